"""
What a tagger has learned
=========================

Features and tags have names, and so have weights: which words speak for which tag, and which tag follows which.
"""

import matplotlib.pyplot as plt

from maxmargin import Tagger

NAMES, PLACES = ["Ann Lee", "Bob Ray", "Eve Orr", "Max Hill"], ["Oslo", "Lima", "New York", "Delhi"]
FRAMES = ["{} lives in {} .", "In {1} , {0} met friends .", "Mr. {} flew to {} .", "{} , of {} , won ."]


def tag(text, kind):
    """Words of a name with their tags."""
    return [(word, f"{'I' if place else 'B'}-{kind}") for place, word in enumerate(text.split())]


def fill(frame, name, place):
    """A sentence of words with tags."""
    words = []
    for word in frame.replace("{}", "{0}", 1).replace("{}", "{1}", 1).split():
        words += tag(name, "PER") if word == "{0}" else tag(place, "LOC") if word == "{1}" else [(word, "O")]
    return words


sentences = [fill(frame, name, place) for frame in FRAMES for name in NAMES for place in PLACES]
X = [[word for word, _ in sentence] for sentence in sentences]
y = [[label for _, label in sentence] for sentence in sentences]
tagger = Tagger().fit(X, y)
print(tagger.predict([["Zoe", "Hill", "lives", "in", "Quito", "."]]))

# %%
# The weights of transitions. A tag I- after O never occurs, so that nothing speaks for it.

model = tagger.model_
labels = model.classes_
figure, axes = plt.subplots(figsize=(5, 4), layout="constrained")
picture = axes.imshow(model.coef_.transitions, cmap="RdBu", vmin=-1, vmax=1)
axes.set(xticks=range(len(labels)), yticks=range(len(labels)), xlabel="tag", ylabel="tag before it")
axes.set_xticklabels(labels, rotation=45)
axes.set_yticklabels(labels)
figure.colorbar(picture)
plt.show()
