"""Brute force: the definitions, without a thought for speed, and without any code of the library."""

from __future__ import annotations

import functools
import itertools
import pickle

import numpy as np


def remembered(solver):
    """Solve a problem once, however many methods are held against its optimum."""
    known = {}

    @functools.wraps(solver)
    def solve(*args, **options):
        key = pickle.dumps((args, options))
        if key not in known:
            known[key] = pickle.dumps(solver(*args, **options))
        return pickle.loads(known[key])

    return solve


def labellings(length, n_labels, allowed=None):
    """All labellings of a chain that use allowed transitions only."""
    for y in itertools.product(range(n_labels), repeat=length):
        if allowed is None or all(allowed[a, b] for a, b in itertools.pairwise(y)):
            yield np.array(y, np.int32)


def matchings(n_left, n_right, complete=False):
    """All matchings: the right node of each left node, or -1 unless complete, no right node twice."""
    for y in itertools.product(range(0 if complete else -1, n_right), repeat=n_left):
        linked = [z for z in y if z >= 0]
        if len(set(linked)) == len(linked):
            yield np.array(y, np.int32)


def alignments(n_left, n_right, warps=False):
    """All monotone alignments: sets of links, of which each item has at most one or, warped, at least one."""
    if not warps:
        for size in range(min(n_left, n_right) + 1):
            for left in itertools.combinations(range(n_left), size):
                for right in itertools.combinations(range(n_right), size):
                    yield [*zip(left, right, strict=True)]
        return
    ways = [[(0, 0)]]
    while ways:
        way = ways.pop()
        i, j = way[-1]
        if (i, j) == (n_left - 1, n_right - 1):
            yield way
        steps = [(i + 1, j + 1), (i + 1, j), (i, j + 1)]
        ways += [[*way, (a, b)] for a, b in steps if a < n_left and b < n_right]


def alignment_moves(links, n_left, n_right, warps=False):
    """The moves of an alignment, 0 of both sides, 1 of the left, 2 of the right, and where each leads."""
    moves, i, j = [], 0, 0
    for left, right in [*links, *([] if warps else [(n_left, n_right)])]:
        while not warps and i < left:
            i += 1
            moves.append((1, i, j))
        while not warps and j < right:
            j += 1
            moves.append((2, i, j))
        if left < n_left and right < n_right:
            moves.append((0 if left + 1 > i and right + 1 > j else 1 if left + 1 > i else 2, left + 1, right + 1))
            i, j = left + 1, right + 1
    return moves


def alignment_row(links, n_left, n_right, warps=False):
    """The output of an alignment: the nodes that it gets to, times 3, plus the move, then -1."""
    moves = alignment_moves(links, n_left, n_right, warps)
    row = [3 * (i * (n_right + 1) + j) + move for move, i, j in moves]
    return np.array(row + [-1] * (n_left + n_right - len(row)), np.int32)


def alignment_parts(links, n_left, n_right, warps=False):
    """Links, deleted and inserted items, unless warped, and how often each move comes after each other."""
    table, turns = np.zeros((n_left, n_right)), np.zeros((3, 3))
    for link in links:
        table[link] = 1
    before = 0
    for move, _, _ in alignment_moves(links, n_left, n_right, warps):
        turns[before, move] += 1
        before = move
    gaps = [] if warps else [1 - table.sum(axis=1), 1 - table.sum(axis=0)]
    return np.concatenate([table.ravel(), *gaps, turns.ravel()])


def dependency_trees(n, n_labels=0, single_root=True, projective=False):
    """All dependency trees of n words: the head of each, 0 for the root, times the number of labels plus its label."""
    for heads in itertools.product(range(n + 1), repeat=n):
        if is_tree(heads) and (not single_root or heads.count(0) == 1) and not (projective and crossing(heads)):
            for labels in itertools.product(range(max(n_labels, 1)), repeat=n):
                yield np.array([h * max(n_labels, 1) + label for h, label in zip(heads, labels, strict=True)], np.int32)


def segmentations(length, limits, allowed=None):
    """All segmentations of rows: the label where a segment begins, the number of labels plus it where it goes on.

    If only some transitions are allowed, those that use these only.
    """
    if length == 0:
        yield np.zeros(0, np.int32)
    for label, limit in enumerate(limits):
        for size in range(1, min(limit, length) + 1):
            for rest in segmentations(length - size, limits, allowed):
                if allowed is None or not rest.size or allowed[label, rest[0]]:
                    yield np.concatenate([[label], np.full(size - 1, len(limits) + label), rest]).astype(np.int32)


def is_tree(heads):
    """Whether every word gets to the root from head to head."""
    for m in range(1, len(heads) + 1):
        steps = 0
        while m != 0 and steps <= len(heads):
            m, steps = heads[m - 1], steps + 1
        if m != 0:
            return False
    return True


def crossing(heads):
    """Whether two arcs cross."""
    spans = [(min(h, m), max(h, m)) for m, h in enumerate(heads, start=1)]
    return any(a < c < b < d for a, b in spans for c, d in spans)


def span_trees(n, n_labels):
    """All trees of labelled spans of n words, lists of triples of start, end and label that do not cross."""
    spans = [(lo, hi) for lo in range(n) for hi in range(lo + 1, n + 1)]
    for labels in itertools.product(range(-1, n_labels), repeat=len(spans)):
        tree = [(*span, label) for span, label in zip(spans, labels, strict=True) if label >= 0]
        if not any(a < c < b < d for a, b, _ in tree for c, d, _ in tree):
            yield tree


def span_output(tree, n, n_labels):
    """The row of integers that stands for a tree: parts of its spans, binarized, from the top down."""
    labels = {(lo, hi): label for lo, hi, label in tree}
    numbers = {span: k for k, span in enumerate((lo, hi) for lo in range(n) for hi in range(lo + 1, n + 1))}

    def write(lo, hi):
        span = numbers[lo, hi]
        yield span * n_labels + labels[lo, hi] if (lo, hi) in labels else len(numbers) * n_labels + span
        if hi > lo + 1:  # the first part is the widest span that starts here, or a word
            split = max(k for k in range(lo + 1, hi) if k == lo + 1 or (lo, k) in labels)
            yield from write(lo, split)
            yield from write(split, hi)

    return np.array([*write(0, n)], np.int32)


def chain_features(x, y, n_labels):
    """The joint feature map of rows x and labels y: emissions (F, L), then transitions (L, L), flat."""
    emissions = np.zeros((x.shape[1], n_labels))
    transitions = np.zeros((n_labels, n_labels))
    for t, label in enumerate(y):
        emissions[:, label] += x[t]
        if t > 0:
            transitions[y[t - 1], label] += 1
    return np.concatenate([emissions.ravel(), transitions.ravel()])


def edge_chain_features(x, z, y, n_labels):
    """Those of chains, then the features z of transitions, a row for each, by the labels of these: (F_edge, L, L)."""
    edges = np.zeros((z.shape[1], n_labels, n_labels))
    for t in range(1, len(y)):
        edges[:, y[t - 1], y[t]] += z[t - 1]
    return np.concatenate([chain_features(x, y, n_labels), edges.ravel()])


def chain_cost(gold, y, matrix=None, scales=None):
    """The cost of labelling y: sum of scale * matrix[true, predicted], Hamming by default."""
    return sum(
        (1.0 if scales is None else scales[t]) * (float(a != b) if matrix is None else matrix[a, b])
        for t, (a, b) in enumerate(zip(gold, y, strict=True))
    )


def table(sequences, golds, n_labels, allowed=None, cost=chain_cost):
    """For each example: psi(y) = phi(gold) - phi(y), one row per labelling, and the costs."""
    blocks = []
    for i, (x, gold) in enumerate(zip(sequences, golds, strict=True)):
        outputs = list(labellings(len(gold), n_labels, allowed))
        truth = chain_features(x, gold, n_labels)
        psi = np.array([truth - chain_features(x, y, n_labels) for y in outputs])
        losses = np.array([cost(gold, y) if cost is chain_cost else cost(i, gold, y) for y in outputs])
        blocks.append((psi, losses))
    return blocks


def blocks_of(problem):
    """The same for a problem of dense chains with the Hamming cost."""
    cuts = problem.starts[1:-1]
    sequences, golds = np.split(problem.features.rows, cuts), np.split(problem.supervision.labels, cuts)
    return table(sequences, golds, len(problem.penalty))


def graph_features(graph, y):
    """The joint feature map of a graph and labels 0 and 1: of the nodes of label 1, then minus those of cut edges."""
    nodes, edges, edge_features = graph
    is_cut = np.array([y[p] != y[q] for p, q in edges], bool)
    return np.concatenate([np.asarray(nodes)[np.asarray(y) == 1].sum(axis=0), -edge_features[is_cut].sum(axis=0)])


def graph_table(graphs, golds, costs):
    """For each graph: psi(y) = phi(gold) - phi(y), one row per labelling, and the costs of its wrong nodes."""
    blocks = []
    for graph, gold, cost in zip(graphs, golds, costs, strict=True):
        outputs = list(labellings(len(gold), 2))
        truth = graph_features(graph, gold)
        psi = np.array([truth - graph_features(graph, y) for y in outputs])
        blocks.append((psi, np.array([cost[gold != y].sum() for y in outputs])))
    return blocks


def primal(w, blocks, C, weight=None):
    """F(w) = (lambda/2) ||w||^2 + (1/n) sum_i weight_i max_y {cost - <w, psi(y)>}, lambda = 1/(n C)."""
    n = len(blocks)
    weight = np.ones(n) if weight is None else weight
    hinges = [np.max(losses - psi @ w) for psi, losses in blocks]
    return np.dot(w, w) / (2 * n * C) + np.dot(weight, hinges) / n


def log_primal(w, blocks, C, weight=None, l1_ratio=0.0):
    """The same with the log loss, log sum_y exp(-<w, psi(y)>), and a share of ||w||_1 in the regularizer."""
    n = len(blocks)
    weight = np.ones(n) if weight is None else weight
    penalty = l1_ratio * np.abs(w).sum() + (1 - l1_ratio) / 2 * np.dot(w, w)
    return penalty / (n * C) + np.dot(weight, [np.logaddexp.reduce(-psi @ w) for psi, _ in blocks]) / n


def log_loss_gradient(w, blocks):
    """The gradient of the log loss, the mean over the examples."""
    total = np.zeros_like(w)
    for psi, _ in blocks:
        total -= np.exp(-psi @ w - np.logaddexp.reduce(-psi @ w)) @ psi
    return total / len(blocks)


@remembered
def solve_log(blocks, C, l1_ratio=0.0, max_steps=20_000):
    """The minimiser of `log_primal`, by accelerated proximal gradient with restarts."""
    l1, l2 = l1_ratio / (len(blocks) * C), (1 - l1_ratio) / (len(blocks) * C)
    step = 1 / (sum(np.square(psi).sum(axis=1).max() for psi, _ in blocks) / len(blocks) + l2)
    w = point = np.zeros(blocks[0][0].shape[1])
    momentum = 1.0
    for _ in range(max_steps):
        forward = point - step * (log_loss_gradient(point, blocks) + l2 * point)
        moved = np.sign(forward) * np.maximum(np.abs(forward) - step * l1, 0)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        if np.dot(point - moved, moved - w) > 0:
            following, point = 1.0, moved
        else:
            point = moved + (momentum - 1) / following * (moved - w)
        if np.abs(moved - w).max() < 1e-13:
            break
        w, momentum = moved, following
    return w


def project_to_simplex(v):
    """The nearest point of the probability simplex."""
    return project_to_simplices(v, np.ones((1, len(v)), bool))


def project_to_simplices(v, is_used):
    """The nearest points of probability simplices: v are those places of a matrix, row by row, that are used."""
    rows = np.full(is_used.shape, -1e300)
    rows[is_used] = v
    u = np.sort(rows)[:, ::-1]
    excess = (np.cumsum(u, axis=1) - 1) / np.arange(1, len(u.T) + 1)
    last = (u > excess).cumsum(axis=1).argmax(axis=1)
    return np.maximum(rows - excess[np.arange(len(u)), last][:, None], 0)[is_used]


@remembered
def solve(blocks, C, weight=None, tol=1e-10, max_steps=200_000, lower=-np.inf, upper=np.inf):
    """The minimiser of F over lower <= w <= upper and its value, with a gap below tol.

    Accelerated projected gradient with restarts on the dual, the maximum over products of simplices of
    b'alpha + min over the box of {(lambda/2) ||w||^2 - lambda <A alpha, w>}: its gradient is b - lambda A'w.
    """
    n = len(blocks)
    weight = np.ones(n) if weight is None else np.asarray(weight, float)
    lam = 1 / (n * C)
    A = np.concatenate([weight[i] * psi / (lam * n) for i, (psi, _) in enumerate(blocks)]).T
    b = np.concatenate([weight[i] * losses / n for i, (_, losses) in enumerate(blocks)])
    sizes = np.array([len(losses) for _, losses in blocks])
    is_used = np.arange(sizes.max()) < sizes[:, None]
    step = 1 / max(lam * np.linalg.norm(A, 2) ** 2, 1e-12)
    alpha = np.concatenate([np.eye(len(losses))[np.argmin(losses)] for _, losses in blocks])
    momentum = 1.0
    point = alpha
    for k in range(max_steps):
        gradient = b - lam * A.T @ np.clip(A @ point, lower, upper)
        moved = project_to_simplices(point + step * gradient, is_used)
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        if np.dot(point - moved, moved - alpha) > 0:  # the momentum leads uphill: restart
            following, point = 1.0, moved
        else:
            point = moved + (momentum - 1) / following * (moved - alpha)
        alpha, momentum = moved, following
        if k % 50 == 0:
            v = A @ alpha
            w = np.clip(v, lower, upper)
            above = primal(w, blocks, C, weight)
            below = b @ alpha + lam * (np.dot(w, w) / 2 - np.dot(v, w))
            if above - below <= tol * max(1.0, abs(above)):
                return w, (above + below) / 2
    raise RuntimeError(f"no convergence: gap {above - below}")


def boxes(height, width, smallest=(1, 1), has_none=False):
    """All boxes (top, left, bottom, right), half-open, of a grid; and the empty one, if wanted."""
    if has_none:
        yield np.zeros(4, np.int32)
    for top, left in itertools.product(range(height), range(width)):
        for bottom, right in itertools.product(
            range(top + smallest[0], height + 1), range(left + smallest[1], width + 1)
        ):
            yield np.array([top, left, bottom, right], np.int32)


def box_iou(a, b):
    """Intersection over union, cell by cell."""
    first, second = (
        set(itertools.product(range(top, bottom), range(left, right))) for top, left, bottom, right in (a, b)
    )
    return len(first & second) / len(first | second) if first | second else 1.0


def box_table(images, golds, has_none=False):
    """For each image of cell features: psi(y) = phi(gold) - phi(y), one row per box, and the costs 1 - IoU.

    With `has_none` the empty box is one of them, and all others have a constant as their last feature.
    """
    blocks = []
    for x, gold in zip(images, golds, strict=True):
        outputs = list(boxes(*x.shape[:2], has_none=has_none))
        phi = [
            np.append(x[y[0] : y[2], y[1] : y[3]].sum(axis=(0, 1)), [float(y[2] > 0)] * has_none)
            for y in (gold, *outputs)
        ]
        blocks.append((phi[0] - np.array(phi[1:]), np.array([1 - box_iou(gold, y) for y in outputs])))
    return blocks


def tree_features(tree, y, n_labels):
    """The joint feature map, from its definition: nodes (F, L), then edges (1 + F_edge, child, parent), flat."""
    nodes = np.zeros((tree.features.shape[1], n_labels))
    edges = np.zeros((1 + tree.edge_features.shape[1], n_labels, n_labels))
    for row, label in zip(tree.features, y, strict=True):
        nodes[:, label] += row
    for (parent, child), row in zip(tree.edges, tree.edge_features, strict=True):
        edges[:, y[child], y[parent]] += [1, *row]
    return np.concatenate([nodes.ravel(), edges.ravel()])


def conlleval_chunks(tags):
    """First token, end and type of each chunk, by the rules of conlleval for B, I, E and O, one by one."""
    chunks, start = [], None
    before, before_type = "O", ""
    for t, tag in enumerate([*tags, "O"]):
        prefix, _, kind = tag.partition("-")
        pair = before + prefix
        ends = pair in ("BB", "BO", "IB", "IO", "EE", "EI", "EO") or (before != "O" and before_type != kind)
        starts = pair in ("BB", "IB", "OB", "OI", "EE", "EI", "OE") or (prefix != "O" and before_type != kind)
        if ends and start is not None:
            chunks.append((start, t, before_type))
            start = None
        if starts:
            start = t
        before, before_type = prefix, kind
    return chunks


def conlleval(y_true, y_pred):
    """What conlleval prints."""
    true, found = (
        {(i, *chunk) for i, tags in enumerate(y) for chunk in conlleval_chunks(tags)} for y in (y_true, y_pred)
    )
    tokens = [pair for rows in zip(y_true, y_pred, strict=True) for pair in zip(*rows, strict=True)]
    accuracy = 100 * sum(a == b for a, b in tokens) / len(tokens)

    def line(true, found):
        precision = 100 * len(true & found) / len(found) if found else 0
        recall = 100 * len(true & found) / len(true) if true else 0
        f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0
        return f"precision: {precision:6.2f}%; recall: {recall:6.2f}%; FB1: {f1:6.2f}"

    counts = f"with {len(true)} phrases; found: {len(found)} phrases; correct: {len(true & found)}."
    lines = [f"processed {len(tokens)} tokens {counts}", f"accuracy: {accuracy:6.2f}%; {line(true, found)}"]
    for kind in sorted({chunk[-1] for chunk in true | found}):
        some, others = ({chunk for chunk in chunks if chunk[-1] == kind} for chunks in (true, found))
        lines.append(f"{kind:>17}: {line(some, others)}  {len(others)}")
    return "\n".join(lines)


def value_of_chain(nodes, pairs, mu=0.0):
    """The best score of a path, or mu log sum_y exp(score(y) / mu), in float64, at any length.

    By products of matrices, neighbours first, so that no sum is longer than it must be.
    """
    nodes, pairs = np.asarray(nodes, float), np.asarray(pairs, float)
    steps = np.concatenate([nodes[:1, np.newaxis, :].repeat(nodes.shape[1], axis=1), pairs + nodes[1:, np.newaxis, :]])
    while len(steps) > 1:
        n = len(steps) // 2 * 2
        through = steps[0:n:2, :, :, np.newaxis] + steps[1:n:2, np.newaxis]
        top = through.max(axis=2)
        rest = mu * np.log(np.exp((through - top[:, :, np.newaxis]) / mu).sum(axis=2)) if mu else 0.0
        steps = np.concatenate([top + rest, steps[n:]])
    ends = steps[0, 0]
    return ends.max() + (mu * np.log(np.exp((ends - ends.max()) / mu).sum()) if mu else 0.0)
