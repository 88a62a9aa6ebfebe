"""The objective and its dual: evaluated, bounded from below, and kept as dual points."""
