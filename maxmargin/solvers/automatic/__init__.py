"""The solver "auto": which of the others to run, and when to hand over."""
