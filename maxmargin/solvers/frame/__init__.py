"""The frame of all solvers: how one is run, watched, interrupted, stopped and resumed."""
