"""Labels of which less, or other, than one true output is known: what users say of them, and what agrees with it."""
