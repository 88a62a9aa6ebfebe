"""How sure distributions over outputs are, and how far apart two of them are."""
