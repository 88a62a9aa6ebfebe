"""
All strengths of regularization in one run
==========================================

``regularization_path`` finds solutions for *every* C down from infinity, each proven to be within a tolerance of
its optimum. The best C by held-out words is read off; nothing hides between the points of a grid.
"""

import matplotlib.pyplot as plt

from maxmargin import ChainSVM, regularization_path
from maxmargin.datasets import digit_words

words = digit_words(n_train=100)
path = regularization_path(
    ChainSVM(random_state=0),
    words.X_train,
    words.y_train,
    tol=0.1,
    C_min=0.003,
    X_dev=words.X_test,
    y_dev=words.y_test,
    lambda_min=0.03,
)
print(f"{len(path)} breakpoints; best on held-out words at C = {path.best_C:.3g}")

# %%

path.plot()
plt.show()
