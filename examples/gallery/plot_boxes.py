"""
Finding things in images
========================

``BoxSVM`` searches all boxes of an image, exactly, for the one whose cells score highest; with ``detect`` it finds
several.
"""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.patches import Rectangle

from maxmargin import BoxSVM
from maxmargin.metrics import mean_iou

HEIGHT, WIDTH = 24, 32


def make_image(rng, n_things=1):
    """Noise, a bright thing or more in it, and their boxes: top, left, bottom, right."""
    image, boxes = rng.normal(size=(HEIGHT, WIDTH)), []
    for column in np.split(np.arange(WIDTH), n_things):
        top, left = rng.integers(1, HEIGHT - 11), rng.integers(column[0], column[-1] - 9)
        bottom, right = top + rng.integers(6, 10), left + rng.integers(6, 10)
        image[top:bottom, left:right] += 1.2
        boxes.append((top, left, bottom, right))
    return image, boxes


def describe(image):
    """Features of cells: how bright they are, and a constant."""
    return np.dstack([image, np.ones_like(image)])


rng = np.random.default_rng(0)
images, boxes = zip(*(make_image(rng) for _ in range(60)), strict=True)
X, y = [describe(image) for image in images], [box for (box,) in boxes]
model = BoxSVM(C=0.03, random_state=0).fit(X[:30], y[:30])
print(f"overlap with the true box, on other images: {mean_iou(y[30:], model.predict(X[30:])):.2f}")

# %%
# Trained on one thing in each image, it finds several, with scores.

image, truth = make_image(rng, n_things=2)
found, scores = model.detect([describe(image)], max_boxes=2)[0]
figure, axes = plt.subplots(figsize=(6, 4.2), layout="constrained")
axes.imshow(image, cmap="gray")
for (top, left, bottom, right), score in zip(found, scores, strict=True):
    axes.add_patch(Rectangle((left - 0.5, top - 0.5), right - left, bottom - top, fill=False, color="tab:orange", lw=2))
    axes.text(left, top - 1, f"{score:.1f}", color="tab:orange", weight="bold")
for top, left, bottom, right in truth:
    axes.add_patch(
        Rectangle((left - 0.5, top - 0.5), right - left, bottom - top, fill=False, color="tab:green", lw=2, ls="--")
    )
axes.set_title("true boxes green, found boxes orange with their scores", fontsize=10)
axes.axis("off")
plt.show()
