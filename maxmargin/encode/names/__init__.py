"""Features by name: the names that models know, their columns, and rows read by them."""
