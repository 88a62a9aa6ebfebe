"""Graphs of any shape: labels of their nodes, exact where treewidths allow, else with bounds by the local polytope."""
