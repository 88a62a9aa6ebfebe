"""
Who is who: matching points
===========================

A cloud of points is turned, shaken, and some points are lost. ``MatchingSVM`` learns how much each cue counts, and
links the clouds one to one; points may stay alone.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import MatchingSVM


def make_clouds(rng, n=12):
    """Two clouds, what links of all pairs look like, and the true partners (-1: none)."""
    left = rng.uniform(-1, 1, size=(n, 2))
    order = rng.permutation(n)
    right = left[order][: n - 2] + rng.normal(scale=0.12, size=(n - 2, 2))
    colors = rng.uniform(size=(n, 3))
    seen = colors[order][: n - 2] + rng.normal(scale=0.25, size=(n - 2, 3))
    far = np.linalg.norm(left[:, None] - right, axis=2)
    unlike = np.linalg.norm(colors[:, None] - seen, axis=2)
    partners = np.full(n, -1)
    partners[order[: n - 2]] = np.arange(n - 2)
    return left, right, np.dstack([-far, -unlike, np.ones_like(far)]), partners


rng = np.random.default_rng(0)
clouds = [make_clouds(rng) for _ in range(60)]
X, y = [cloud[2] for cloud in clouds], [cloud[3] for cloud in clouds]
model = MatchingSVM(C=1.0, random_state=0).fit(X[:30], y[:30])
nearest = np.mean(
    [np.mean(pairs[..., 0].argmax(axis=1) == partners) for pairs, partners in zip(X[30:], y[30:], strict=True)]
)
print(f"points right: {model.score(X[30:], y[30:]):.2f}; by the nearest point: {np.mean(nearest):.2f}")

# %%

left, right, pairs, partners = clouds[-1]
found = model.predict([pairs])[0]
figure, axes = plt.subplots(figsize=(6, 4.5), layout="constrained")
axes.scatter(*left.T, label="left")
axes.scatter(*right.T, marker="s", label="right")
for point, (partner, true) in enumerate(zip(found, partners, strict=True)):
    if partner >= 0:
        color = "tab:green" if partner == true else "tab:red"
        axes.plot(*np.stack([left[point], right[partner]]).T, color=color)
axes.set_title("links that are right green, wrong red", fontsize=10)
axes.legend()
axes.axis("off")
plt.show()
