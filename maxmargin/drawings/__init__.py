"""How outputs look: a drawing function and a table for each kind of them, and the page of a model made of these."""
