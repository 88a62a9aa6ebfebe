"""Features of the tokens of sentences, by name or by column: what they are made of, and how they are looked up."""
