"""Arrays as compiled code has them: blocks of examples, vectors, matrix views, lanes, semirings, exponentials."""
