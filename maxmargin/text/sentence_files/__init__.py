"""Files of tagged sentences: columns, CoNLL-U and JSON lines, and what they have in common."""
