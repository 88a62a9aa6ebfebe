"""Classes of words learned from text: each move is the best one by brute force, and so is each merge."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from maxmargin.runtime import interpreted
from maxmargin.text import learn_classes, read_classes
from maxmargin.text.resources import learned_classes
from maxmargin.text.resources.exchange import count_pairs, exchange, find_paths
from maxmargin.text.resources.learned_classes import count_neighbours
from tests.cli.conftest import run

TEXTS = st.lists(st.lists(st.sampled_from("abcde"), min_size=1, max_size=6), min_size=2, max_size=8)


def x_log(n):
    n = np.asarray(n, float)
    return n * np.log(np.maximum(n, 1))


def likelihood(counts):
    """That of a text by a bigram model of classes, up to a constant."""
    return x_log(counts).sum() - x_log(counts.sum(axis=1)).sum() - x_log(counts.sum(axis=0)).sum()


def naive_counts(text, words, classes, n_classes):
    """How often classes follow each other, by reading the text; the last one is what words are not in."""
    number = dict(zip(words, classes, strict=True))
    counts = np.zeros((n_classes + 1, n_classes + 1), int)
    row = [n_classes, *itertools.chain.from_iterable([*(number.get(w, n_classes) for w in s), n_classes] for s in text)]
    np.add.at(counts, (row[:-1], row[1:]), 1)
    return counts


@given(TEXTS, st.integers(2, 3))
def test_no_move_of_a_word_is_better(text, n_classes):
    words = sorted({word for sentence in text for word in sentence})
    with interpreted():
        neighbours = count_neighbours((text,), words, "utf-8")
        classes = exchange(neighbours, n_classes, max_passes=50)
    counts = naive_counts(text, words, classes, n_classes)
    np.testing.assert_array_equal(count_pairs(neighbours, np.append(classes, n_classes), n_classes + 1), counts)
    best = likelihood(counts)
    for w, k in itertools.product(range(len(words)), range(n_classes)):
        moved = classes.copy()
        moved[w] = k
        assert likelihood(naive_counts(text, words, moved, n_classes)) <= best + 1e-6


@given(st.integers(0, 1000), st.integers(2, 5))
def test_merges_lose_the_least(seed, n_classes):
    counts = np.random.default_rng(seed).integers(0, 9, (n_classes + 1, n_classes + 1))
    with interpreted():
        paths = find_paths(counts)
    assert len({*paths}) == n_classes
    assert not any(a != b and b.startswith(a) for a, b in itertools.permutations(paths, 2))
    nodes = {path: {k} for k, path in enumerate(paths)}
    while len(nodes) > 1:  # undo what was done: of the merges that the tree has, the first is the best of all
        table = merged(counts, [*nodes.values()], n_classes)
        losses = {
            (a, b): likelihood(table) - likelihood(merged(counts, joined(nodes, a, b), n_classes))
            for a, b in itertools.combinations(nodes, 2)
        }
        siblings = [(a, b) for a, b in losses if a[:-1] == b[:-1] and len(a) == len(b)]
        a, b = min(siblings, key=losses.__getitem__)
        assert losses[a, b] <= min(losses.values()) + 1e-6
        nodes[a[:-1]] = nodes.pop(a) | nodes.pop(b)


def joined(nodes, a, b):
    """The sets of classes, two of them as one."""
    return [*(members for path, members in nodes.items() if path not in (a, b)), nodes[a] | nodes[b]]


def merged(counts, groups, n_classes):
    """How often sets of classes follow each other."""
    groups = [*groups, {n_classes}]
    return np.array([[counts[np.ix_([*a], [*b])].sum() for b in groups] for a in groups])


def test_words_with_like_neighbours(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    names, verbs, things = ([f"{kind}{k}" for k in range(6)] for kind in "NVT")
    text = [[rng.choice(names), rng.choice(verbs), "the", rng.choice(things)] for _ in range(400)]
    classes = learn_classes(text, n_classes=4)
    assert [len({classes[word] for word in group}) for group in (names, verbs, things)] == [1, 1, 1]
    assert len({*classes.values()}) == 4
    path = tmp_path / "text.txt"
    path.write_text("\n".join(map(" ".join, text)))
    monkeypatch.setattr(learned_classes, "CHUNK", 50)
    assert learn_classes(path, n_classes=4) == learn_classes((path,), n_classes=4) == classes
    with interpreted():
        assert learn_classes(text[:80], n_classes=4, max_passes=1) == learn_classes(
            (text[:9], text[9:80]), n_classes=4, max_passes=1
        )


def test_bad_text(tmp_path):
    for content in ("", "\n \n\n"):
        (tmp_path / "empty.txt").write_text(content)
        with pytest.raises(ValueError, match=r"empty.txt holds no words."):
            learn_classes((tmp_path / "empty.txt", [["a", "b"]] * 2), n_classes=1)
    with pytest.raises(
        ValueError, match=r"n_classes must be at most the number of words that occur 2 times or more, 1"
    ):
        learn_classes([["a", "a", "b"]], n_classes=3)
    with pytest.raises(ValueError, match=r"min_count must be an integer, at least 1, not 0."):
        learn_classes([["a"]], min_count=0)


def test_on_the_command_line(tmp_path):
    text, target = tmp_path / "text.txt", tmp_path / "classes.tsv"
    text.write_text("a sees it\nb sees it\na has it\nb has it\n")
    found = run("clusters", text, "-o", target, "--classes", 3)
    assert found.code == 0
    assert "5 words in 3 classes" in found.err
    classes = read_classes(target)
    assert classes["a"] == classes["b"] != classes["it"]
    assert run("clusters", text, "-o", text).code == 1
