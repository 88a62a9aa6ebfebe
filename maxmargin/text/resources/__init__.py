"""What is known of words from outside: files of classes and vectors, lists of names, and classes learned from text."""
