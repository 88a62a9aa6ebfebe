"""Cuts: binary labels on graphs with attractive edges, by maximum flows."""
