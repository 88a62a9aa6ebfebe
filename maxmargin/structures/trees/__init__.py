"""Trees: labels of the nodes of rooted forests."""
