"""Boxes: one of the boxes of each image, scored by its cells."""
