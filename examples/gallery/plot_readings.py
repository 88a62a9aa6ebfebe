"""
A word and its readings
=======================

A conditional random field reads whole words. Its probabilities are exact: of each digit at each place, and of whole
words.
"""

import matplotlib.pyplot as plt
import numpy as np

from maxmargin import ChainCRF
from maxmargin.datasets import digit_words

words = digit_words()
model = ChainCRF(C=0.1, random_state=0).fit(words.X_train, words.y_train)
print(f"digits right: {model.score(words.X_test, words.y_test):.3f};", model.certificate_)

# %%
# The word that the model is least sure of: its pixels, the probability of each digit at each place, and its likeliest
# readings.

marginals = model.predict_marginals(words.X_test)
doubt = int(np.argmin([np.max(rows, axis=1).min() for rows in marginals]))
pixels, truth = words.X_test[doubt], words.y_test[doubt]

figure, (above, below) = plt.subplots(2, 1, figsize=(7, 5), height_ratios=(1, 2.6), layout="constrained")
above.imshow(np.hstack([row.reshape(8, 8) for row in pixels]), cmap="gray_r", aspect="auto")
above.axis("off")
below.imshow(marginals[doubt].T, cmap="Blues", vmin=0, vmax=1, aspect="auto")
below.scatter(range(len(truth)), truth, marker="o", facecolors="none", edgecolors="tab:orange", s=250, label="truth")
below.set(xlabel="place", ylabel="digit", xticks=range(len(truth)), yticks=range(10))
below.legend(loc="upper right")
plt.show()

# %%

for reading in model.predict_topk(words.X_test[doubt : doubt + 1], k=3)[0]:
    print(reading)
