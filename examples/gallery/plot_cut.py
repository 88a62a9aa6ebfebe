"""
Cleaning up a picture by cuts
=============================

Two labels, ink and paper, that like to agree with their neighbours: the best of all labellings of an image is a
minimum cut, found exactly. How much neighbours should agree is learned.
"""

import matplotlib.pyplot as plt
import numpy as np
from scipy.ndimage import gaussian_filter

from maxmargin import GraphCutSVM
from maxmargin.vision import grid_edges

SIDE = 40


def make_blobs(rng):
    """A mask of smooth blobs, and what a bad camera sees of it."""
    mask = gaussian_filter(rng.normal(size=(SIDE, SIDE)), 4) > 0
    return mask, mask + rng.normal(scale=0.9, size=mask.shape)


rng = np.random.default_rng(0)
masks, seen = zip(*(make_blobs(rng) for _ in range(10)), strict=True)
X = [(image.reshape(-1, 1), grid_edges(SIDE, SIDE)) for image in seen]
y = [mask.ravel().astype(int) for mask in masks]

together = GraphCutSVM(C=1.0, random_state=0).fit(X[:6], y[:6])
labels = together.predict(X[6:])
print(f"weight of agreement: {together.coef_.edges[0]:.2f}")

# %%
# An image that was not seen in training, thresholded pixel by pixel and cut.

pictures = {
    "truth": masks[6],
    "seen": seen[6],
    "pixel by pixel": seen[6] > 0.5,
    "together": labels[0].reshape(SIDE, SIDE),
}
figure, row = plt.subplots(1, 4, figsize=(9, 2.7), layout="constrained")
for axes, (name, picture) in zip(row, pictures.items(), strict=True):
    right = f", {np.mean(picture == masks[6]):.1%} right" if name in ("pixel by pixel", "together") else ""
    axes.imshow(picture, cmap="gray_r")
    axes.set_title(name + right, fontsize=10)
    axes.axis("off")
plt.show()
