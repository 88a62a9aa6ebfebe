"""Block-coordinate Frank-Wolfe (*Gaps*): steps on one example at a time, and the path that follows them."""
