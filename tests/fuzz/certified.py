"""What is certified of a model, checked by enumeration: its objective, and a lower bound that no weights go below."""

import itertools

import numpy as np
from scipy.optimize import linprog

from maxmargin import problem as generics
from maxmargin.arrays.blocks import in_precision
from maxmargin.estimators.foundation.fitting import find_loss
from maxmargin.features import DenseFeatures, layout_of
from maxmargin.features.kernel_features import complete, tables
from maxmargin.features.linear_map import Gram
from maxmargin.problem import IMPOSSIBLE, n_examples, new_weights, part_sizes
from maxmargin.solvers.objective.bounds import make_bounds, project
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.structures.graphs.kernel_cliques import with_node_features
from tests import naive


def all_outputs(problem, i):
    """All outputs of an example, from the definition of its structure."""
    kind = type(problem).__name__
    if kind == "RescaledProblem":
        return all_outputs(problem.base, i)
    if kind == "ChainProblem":
        return naive.labellings(problem.starts[i + 1] - problem.starts[i], len(problem.penalty))
    if kind == "TreeProblem":
        return naive.labellings(problem.starts[i + 1] - problem.starts[i], problem.supervision.cost.shape[1])
    if kind == "EliminationProblem":
        nodes = problem.graphs.nodes
        sizes = nodes.n_parts[nodes.type[nodes.starts[i] : nodes.starts[i + 1]]]
        return (np.array(y, np.int32) for y in itertools.product(*map(range, sizes)))
    if kind == "GraphCutProblem":
        return naive.labellings(problem.starts[i + 1] - problem.starts[i], 2)
    if kind == "IndependentProblem":
        return naive.labellings(problem.n_labels, 2)
    if kind in ("CandidateProblem", "MulticlassProblem"):
        return naive.labellings(1, part_sizes(problem)[i])
    if kind == "MatchingProblem":
        return naive.matchings(problem.left_starts[i + 1] - problem.left_starts[i], problem.n_right[i])
    if kind == "BoxProblem":
        return naive.boxes(*problem.shapes[i])
    if kind == "DeformableProblem":
        n_cells, n_edges = problem.starts[i + 1] - problem.starts[i], len(problem.parent)
        n_joints, n_types = problem.supervision.outputs.shape[1] - n_edges, problem.anchor.shape[1]
        ranges = [range(n_cells)] * n_joints + [range(n_types)] * n_edges
        return (np.array(y, np.int32) for y in itertools.product(*ranges))
    if kind in ("ProjectiveProblem", "NonprojectiveProblem"):
        n_words = int(problem.starts[i + 1] - problem.starts[i])
        options = problem.n_labels, problem.single_root, kind == "ProjectiveProblem"
        return naive.dependency_trees(n_words, *options)
    if kind == "AlignmentProblem":
        (m, n), warps = problem.sides[i], problem.warps
        return (naive.alignment_row(links, m, n, warps) for links in naive.alignments(m, n, warps))
    if kind == "SegmentProblem":
        return naive.segmentations(problem.starts[i + 1] - problem.starts[i], problem.limits)
    if kind == "SpanProblem":
        n_words = int(problem.starts[i + 1] - problem.starts[i])
        return (
            naive.span_output(tree, n_words, problem.n_labels) for tree in naive.span_trees(n_words, problem.n_labels)
        )
    return (np.array([problem.number(i, y)]) for y in itertools.product([0, 1], repeat=3))  # `tests.toy.Labels`


def blocks_of(problem):
    """For each example: psi(y) = B (s(true output) - s(y)), one row per output, and the costs."""
    size, blocks = new_weights(problem).size, []
    for i in range(n_examples(problem)):
        cost = np.zeros(part_sizes(problem)[i], new_weights(problem).dtype)
        generics.augment(problem, i, cost)
        base = getattr(problem, "base", problem)  # of rescaled slacks, whose scores of impossible outputs are, too
        before = np.zeros(part_sizes(base)[i], cost.dtype)  # potentials before any weight
        generics.scores(base, new_weights(problem), i, before)
        psi, costs = [], []
        for y in all_outputs(problem, i):
            if generics.score_output(base, i, before, y) < IMPOSSIBLE / 2:
                continue
            mu = np.zeros_like(cost)
            generics.add_output(problem, i, y, -1.0, mu)
            costs.append(-float(cost.astype(float) @ mu))
            generics.add_output(problem, i, generics.true_output(problem, i), 1.0, mu)
            psi.append(np.zeros(size))
            generics.spread(problem, psi[-1], i, mu, 1.0)
        blocks.append((np.array(psi), np.array(costs)))
    return blocks


def objective(w, blocks, C, weight, loss, l1_ratio=0.0):
    """F(w), from its definition."""
    n, total, smoothing = len(blocks), 0.0, getattr(loss, "smoothing", None)
    for (psi, costs), scale in zip(blocks, weight, strict=True):
        z = loss.margin * costs - psi @ w
        if smoothing == "l2":
            u = naive.project_to_simplex((z - z.max()) / loss.level)
            h = z.max() + u @ (z - z.max()) - loss.level / 2 * (u @ u - 1)
        elif smoothing == "entropy":
            h = z.max() + loss.level * np.log(np.exp((z - z.max()) / loss.level).sum())
        else:
            h = z.max() ** 2 / 2 if loss.name == "squared_hinge" else z.max()
        total += scale * h / n
    return total + (l1_ratio * np.abs(w).sum() + (1 - l1_ratio) / 2 * np.dot(w, w)) / (n * C)


def potentials_of(problem, w, i, size, loss):
    """Those of an example, with costs where the loss has a margin, and the score of its true output without them."""
    theta, truth = np.zeros((2, size))
    generics.scores(problem, w, i, theta)
    generics.add_output(problem, i, generics.true_output(problem, i), 1.0, truth)
    score = theta @ truth
    if loss.margin:
        generics.augment(problem, i, theta)
    return theta, score


def objective_of_chains(problem, w, C, loss):
    """F(w) of chains of any length, whose outputs nobody enumerates: the hinge loss, or one smoothed by entropy."""
    problem, w, n, total = in_precision(problem, np.float64), w.astype(float), n_examples(problem), 0.0
    for i, size in enumerate(part_sizes(problem)):
        theta, score = potentials_of(problem, w, i, size, loss)
        n_labels = len(problem.penalty)
        nodes, pairs = np.split(theta.reshape(-1, n_labels), [size // n_labels - n_labels])
        total += (naive.value_of_chain(nodes, pairs, loss.level * loss.is_smooth) - score) / n
    return total + w @ w / (2 * n * C)


def size_of_scores(problem, i, w, psi):
    """The sum of the magnitudes of potentials and features: what rounding is relative to, even where scores cancel."""
    theta = np.zeros(part_sizes(problem)[i], w.dtype)
    generics.scores(problem, w, i, theta)
    return np.abs(theta[theta > IMPOSSIBLE / 2]).sum(dtype=float) + (np.abs(psi) @ np.abs(w.astype(float))).max()


def local_polytope(problem, i):
    """The rows A of A mu = f: parts of nodes and of edges sum up to 1, those of edges to those of their nodes."""
    nodes, edges = problem.graphs.nodes, problem.graphs.edges
    sizes = nodes.n_parts[nodes.type[nodes.starts[i] : nodes.starts[i + 1]]]
    ends = problem.graphs.ends[edges.starts[i] : edges.starts[i + 1]]
    starts = np.cumsum([0, *sizes, *(sizes[a] * sizes[b] for a, b in ends)])
    rows, right = [], []
    for lo, hi in itertools.pairwise(starts[: len(sizes) + 1]):
        rows.append(np.zeros(starts[-1]))
        rows[-1][lo:hi] = 1
        right.append(1.0)
    for (a, b), at in zip(ends, starts[len(sizes) :], strict=False):
        table = at + np.arange(sizes[a] * sizes[b]).reshape(sizes[a], sizes[b])
        for v, parts in ((a, table), (b, table.T)):
            for x in range(sizes[v]):
                rows.append(np.zeros(starts[-1]))
                rows[-1][parts[x]] = 1
                rows[-1][starts[v] + x] = -1
                right.append(0.0)
    return np.array(rows), np.array(right)


def most_of_relaxed(w, problem, C, weight, loss):
    """The objective of a relaxed loss at w, or more: its maximum of scores, by linear programming, and of entropies.

    Gini's entropy of nodes and edges is at most 1 each. That of trees, where it is multiplied by the number of states,
    is at most as many.
    """
    problem, w, total = in_precision(problem, np.float64), w.astype(float), 0.0
    for i, size in enumerate(part_sizes(problem)):
        theta, score = potentials_of(problem, w, i, size, loss)
        A, right = local_polytope(problem, i)
        scale = float(np.abs(theta).max()) or 1.0
        found = linprog(-theta / scale, A_eq=A, b_eq=right, bounds=(0, 1))
        n_cliques = np.count_nonzero(right) + (problem.graphs.edges.starts[i + 1] - problem.graphs.edges.starts[i])
        most = n_cliques * (1.0 if loss.entropy == "gini" else float(problem.graphs.nodes.n_parts.max()) ** 2)
        total += weight[i] * (loss.level * most - found.fun * scale - score) / len(weight)
    return total + w @ w / (2 * len(weight) * C)


def explicit(problem, *models):
    """A problem of linear features and the weights of models that were trained on it; kernels are factored."""
    if layout_of(problem).is_explicit:
        return problem, [model._w for model in models]
    features = problem.graphs.nodes.features if hasattr(problem, "graphs") else problem.features
    n, n_labels = len(features.slot), features.n_labels
    values, vectors = np.linalg.eigh(whole_gram(features))
    rows = vectors * np.sqrt(np.maximum(values, 0))
    weights = []
    for model in models:
        coefficients = np.zeros((n, n_labels))
        coefficients[model.support_] = model.coef_.dual.reshape(-1, n_labels)
        of_rows = coefficients.T @ rows if hasattr(problem, "graphs") else rows.T @ coefficients
        weights.append(np.append(of_rows, model._w[model.coef_.dual.size :]))
    linear = DenseFeatures(np.ascontiguousarray(rows), Gram(np.empty(0), np.full(n_examples(problem), -1)))
    if hasattr(problem, "graphs"):
        return in_precision(with_node_features(problem, linear, n), float), weights
    return in_precision(problem._replace(features=linear, n_features=n), float), weights


def whole_gram(features):
    """The Gram matrix of features of a kernel, column by column."""
    n = len(features.slot)
    w = np.zeros(2 * features.n_labels * n)
    coefficients, scores = tables(features, w)
    gram = np.zeros((n, n))
    for t in range(n):
        coefficients[0] = np.eye(n)[t]
        complete(features, w)
        gram[t] = scores[0]
    return gram


def false_certificate(model, X, y, sample_weight, reference, **data):
    """What is wrong with the certificate of a fitted model, or None; `reference` is another one to compare with."""
    task = model._encode(X, y, **data)
    problem, (own, theirs) = explicit(task.problem, model, reference)
    blocks = blocks_of(problem)
    n, loss, C = len(blocks), find_loss(model), float(model.C)
    weight = np.ones(n) if sample_weight is None else np.asarray(sample_weight, float)
    bounds = make_bounds(task.lower, task.upper, own)  # as weights of the dtype can keep them
    w = own.astype(float)
    primal, dual = model.certificate_
    with np.errstate(over="ignore"):
        costs = np.array([costs.max() for _, costs in blocks]) + loss.level * loss.is_smooth
        scores = np.array([size_of_scores(problem, i, own, psi) for i, (psi, _) in enumerate(blocks)])
        size = weight @ (costs + scores) / n + abs(primal)
        slack = 1e-9 * size  # of this check; what is certified allows for its own rounding
        found = objective(w, blocks, C, weight, loss)
        others = [project(v, bounds) for v in (np.zeros_like(w), theirs.astype(float), w / 2)]
        if loss.name == "relaxed":  # more than the maximum over outputs, which have no entropy
            excess = np.inf
            least = min(most_of_relaxed(v, problem, C, weight, loss) for v in (w, *others))
        else:
            excess = 1e-5 * size if model._w.dtype == np.float32 else slack
            if loss.oracle == "topk":  # bounded from above where it would take more outputs than max_k
                excess += Objective(problem, C, weight, loss=loss).evaluate(own).slack
            least = min(found, *(objective(v, blocks, C, weight, loss) for v in others))
    is_estimated = not getattr(model.solver, "exact_gaps", True)
    if not (found - slack <= primal <= found + excess or is_estimated):
        return f"the objective is {found!r}, but {primal!r} is certified"
    if not dual <= least + slack:
        return f"the objective can be {least!r}, but the lower bound is {dual!r}"
    return None
