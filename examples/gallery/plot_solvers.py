"""
One objective, six solvers
==========================

Every solver minimises the same objective and says how far from its minimum it can at most be: the *gap*. Solvers
differ in how fast the gap shrinks, by passes over the examples.
"""

import warnings

import matplotlib.pyplot as plt

from maxmargin import BCFW, SGD, Casimir, ChainSVM, FrankWolfe, OneSlack
from maxmargin.datasets import digit_words

words = digit_words(n_train=150)
solvers = {
    "BCFW, pairwise, by gaps": BCFW(steps="pairwise", sampling="gap"),
    "BCFW, plain": BCFW(steps="fw", sampling="uniform"),
    "1-slack cutting planes": OneSlack(),
    "Casimir": Casimir(),
    "SGD": SGD(),
    "Frank-Wolfe": FrankWolfe(),
}

figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
for name, solver in solvers.items():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some are not done after 60 passes
        model = ChainSVM(C=0.1, solver=solver, tol=1e-4, max_passes=60, random_state=0).fit(
            words.X_train, words.y_train
        )
    trace = model.trace_
    axes.semilogy(trace.passes, trace.gap, label=name)
axes.set(xlabel="passes over the examples", ylabel="gap", ylim=(1e-4, 10), xlim=(0, 60))
axes.legend()
plt.show()
