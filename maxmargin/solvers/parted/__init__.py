"""Training on examples in portions, each of which lives somewhere: in memory, in a file, on another machine."""
