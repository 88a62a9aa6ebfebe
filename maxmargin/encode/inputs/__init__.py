"""What encoders are made of: checks of examples, rows of features, vocabularies, edges, names of weights."""
