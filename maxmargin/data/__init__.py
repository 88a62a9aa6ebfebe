"""Data in portions, on disk or in memory, of which one is looked at after the other."""
