"""The structures: one file per polytope, with its oracles."""
