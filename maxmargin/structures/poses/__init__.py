"""Poses: joints at cells of grids, held together by springs."""
