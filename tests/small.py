"""Small data for every estimator: examples, true outputs, and an example with another number of features."""

import numpy as np

from maxmargin import CustomProblem, Tree
from maxmargin.estimators import all_estimators
from tests.toy import Labels, label_data


def chains(rng):
    y = [rng.integers(0, 3, length) for length in (4, 3, 2, 3, 1, 2, 3, 2)]
    X = [np.eye(3)[labels] + 0.4 * rng.normal(size=(len(labels), 3)) for labels in y]
    return X, [np.array(["a", "b", "c"])[labels] for labels in y], [np.eye(2)]


def trees(rng):
    X, y, _ = chains(rng)
    return [Tree(x, [(0, child) for child in range(1, len(x))]) for x in X], y, [(np.eye(2), [(0, 1)])]


def graphs(rng):
    y = [np.arange(size) % 2 for size in (3, 2, 4, 3, 2, 1, 3, 2)]
    X = [(labels[:, None] - 0.5 + 0.4 * rng.normal(size=(len(labels), 2)), [(0, 1)][: len(labels) - 1]) for labels in y]
    return X, y, [(np.eye(3), [(0, 1)])]


def cycles(rng):
    X, y, other = chains(rng)
    return [(x, [(0, 1), (1, 2), (2, 0)] if len(x) == 3 else [(0, 1)][: len(x) - 1]) for x in X], y, [(other[0], [])]


def candidates(rng):
    X = [rng.normal(size=(rng.integers(2, 5), 2)) for _ in range(8)]
    return X, [int(np.argmax(x[:, 0] + 0.2 * rng.normal(size=len(x)))) for x in X], [np.eye(3)]


def classes(rng):
    y = np.arange(12) % 3
    return np.eye(3)[y] + 0.3 * rng.normal(size=(12, 3)), np.array(["a", "b", "c"])[y], np.eye(2)


def several_labels(rng):
    y = np.array([[0, 1, 1], [1, 0, 0], [1, 1, 0], [0, 0, 1]] * 3)
    return y @ np.eye(3, 2) + 0.3 * rng.normal(size=(12, 2)), y, np.eye(3)


def matchings(rng):
    y = [np.array(match) for match in ([0, 1], [1, -1], [-1], [2, 0], [1], [0, -1], [1, 0], [0])]
    X = [np.eye(3)[match] + 0.3 * rng.normal(size=(len(match), 3)) for match in y]
    return [np.dstack([x, np.ones_like(x)]) for x in X], y, [np.ones((2, 2, 3))]


def alignments(rng):
    y = [[0, 1], [1, -1], [-1, 0], [0, 2], [1], [0, -1], [-1, 1], [0]]
    X = [np.eye(3)[match] + 0.3 * rng.normal(size=(len(match), 3)) for match in y]
    return [np.dstack([x, np.ones_like(x)]) for x in X], y, [np.ones((2, 2, 3))]


def warped_rows(rng):
    y = ["MM", "MD", "MI", "MMD", "MIM", "MM", "MDM", "MI"]
    X = []
    for moves in y:
        left, right = np.cumsum([move != "I" for move in moves]), np.cumsum([move != "D" for move in moves])
        places = np.arange(len(moves))
        means = [[[places[side == k].mean()] for k in range(1, side[-1] + 1)] for side in (left, right)]
        X.append(tuple(np.array(rows) + 0.2 * rng.normal(size=(len(rows), 1)) for rows in means))
    return X, y, [(np.eye(2), np.eye(2))]


def parses(rng):
    y = [[2, 0, 2], [0, 1], [2, 0], [0], [0, 1, 2], [3, 1, 0], [2, 0, 2], [0, 1]]
    X = [np.stack([np.eye(len(t) + 1)[t], np.tri(len(t), len(t) + 1)], axis=2) for t in y]
    return [x + 0.4 * rng.normal(size=x.shape) for x in X], y, [np.ones((1, 2, 3))]


def labelled_parses(rng):
    X, y, other = parses(rng)
    return X, [[(head, "ab"[m % 2]) for m, head in enumerate(tree)] for tree in y], other


def segments(rng):
    X, y, other = chains(rng)
    whole = [[(0, min(2, len(labels)), labels[0])] for labels in y]
    rest = [[(t, t + 1, labels[t]) for t in range(2, len(labels))] for labels in y]
    return X, [first + later for first, later in zip(whole, rest, strict=True)], other


def tagged(rng):
    X, y, other = chains(rng)
    return X, [[f"B-{labels[0]}", f"I-{labels[0]}", "O", "O"][: len(labels)] for labels in y], other


def constituents(rng):
    trees = [[(0, 2, "S"), (0, 1, "N")], [(0, 3, "S"), (1, 3, "N")], [(0, 1, "S")], [(0, 2, "S")]] * 2
    X = []
    for tree in trees:
        n = max(end for _, end, _ in tree)
        spans = [(lo, hi) for lo in range(n) for hi in range(lo + 1, n + 1)]
        x = 0.3 * rng.normal(size=(len(spans), 2)) - 1
        for *span, label in tree:
            x[spans.index(tuple(span)), "SN".index(label)] += 3
        X.append(x)
    return X, trees, [np.ones((3, 3))]


def boxes(rng):
    y = [(0, 0, 2, 2), (1, 1, 3, 3), (0, 1, 2, 3), (1, 0, 3, 2), (0, 0, 3, 2), (1, 1, 2, 3), (0, 0, 1, 3), (0, 2, 3, 3)]
    X = [0.5 * rng.normal(size=(3, 3, 2)) - 1 for _ in y]
    for x, (top, left, bottom, right) in zip(X, y, strict=True):
        x[top:bottom, left:right] += 2
    return X, y, [np.ones((2, 2, 3))]


def poses(rng):
    y = [np.array([[x, 1], [x + 1, 2]]) for x in (0, 1, 2, 1, 0, 2, 1, 0)]
    X = [0.5 * rng.normal(size=(3, 4, 2)) for _ in y]
    for x, pose in zip(X, y, strict=True):
        x[pose[:, 1], pose[:, 0]] += 2 * np.eye(2)
    return X, y, [np.ones((3, 4, 3))]


def own(rng):
    return *label_data(8), None


def make_labels(X, y=None):
    return CustomProblem(Labels(), X, y, 9)


def read_labels(problem, i, row):
    return problem.output(i, row)


CASES = {
    "AlignmentCRF": ({"warp": True}, warped_rows),
    "AlignmentSVM": ({}, alignments),
    "BoxSVM": ({}, boxes),
    "CandidateCRF": ({}, candidates),
    "CandidateSVM": ({}, candidates),
    "ChainCRF": ({}, chains),
    "ChainSVM": ({}, chains),
    "DeformableCRF": ({"edges": [(0, 1)]}, poses),
    "DeformableSVM": ({"edges": [(0, 1)], "tol": 0.01}, poses),
    "DependencyCRF": ({"projective": False}, parses),
    "DependencySVM": ({}, labelled_parses),
    "GraphCRF": ({}, cycles),
    "GraphCutSVM": ({}, graphs),
    "GraphSVM": ({}, cycles),
    "KernelCandidateSVM": ({}, candidates),
    "KernelChainCRF": ({}, chains),
    "KernelChainSVM": ({}, chains),
    "KernelGraphSVM": ({}, cycles),
    "KernelMulticlassSVM": ({}, classes),
    "KernelTreeSVM": ({}, trees),
    "MatchingSVM": ({}, matchings),
    "MulticlassSVM": ({}, classes),
    "MultiLabelCRF": ({"graph": "full"}, several_labels),
    "MultiLabelSVM": ({}, several_labels),
    "ProblemModel": ({"make_problem": make_labels, "decode": read_labels}, own),
    "SegmentCRF": ({}, tagged),
    "SegmentSVM": ({}, segments),
    "SpanCRF": ({}, constituents),
    "SpanSVM": ({}, constituents),
    "StructuredSVM": ({"model": Labels()}, own),
    "TreeCRF": ({}, trees),
    "TreeSVM": ({}, trees),
}


def make(name):
    """An estimator and its data."""
    options, data = CASES[name]
    return all_estimators()[name](random_state=0, **options), *data(np.random.default_rng(0))
