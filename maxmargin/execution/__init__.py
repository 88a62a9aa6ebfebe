"""How work over all examples is run: passes, threads, clocks."""
