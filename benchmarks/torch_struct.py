"""Losses of structures and their gradients by `maxmargin.torch` beside torch-struct, if it is installed.

The same distributions on both sides, on one thread: segments of up to six rows (semi-Markov), projective dependency
trees, all dependency trees (matrix-tree theorem), and binary trees of labelled spans (CKY). CPU time of a forward and
a backward pass, the least of several, and the memory that a first pass in a fresh process takes.
"""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.common import Bar, in_fresh_process, parse_arguments, print_table, report
from benchmarks.torch_losses import measure

LONGEST = 6  # rows of a segment
NEVER = -1e9  # the potential of what torch-struct is not to have
CERTAIN = 30.0  # more for every label: then spans without one, which torch-struct's trees have not, are out of the way
SHAPES = {  # batch, length, labels
    "segments": (16, 40, 8),
    "projective trees": (32, 30, 1),
    "all trees": (32, 30, 1),
    "spans": (16, 30, 20),
}
FASTER, LESS_MEMORY = 10, 10


def passes(structure: str, name: str, shape: tuple[int, int, int]) -> Callable[[], float]:
    """A function that takes the loss and its gradient."""
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    is_ours = name == "maxmargin"
    if structure == "segments":
        loss = segment_loss(shape, is_ours=is_ours)
    elif structure == "spans":
        loss = span_loss(shape, is_ours=is_ours)
    else:
        loss = tree_loss(shape, is_ours=is_ours, projective=structure == "projective trees")

    def both() -> float:
        value = loss()
        value.backward()
        return value.item()

    return both


def segment_loss(shape: tuple[int, int, int], *, is_ours: bool) -> Callable[[], Any]:
    """The loss of segmentations into single rows, all of the first label."""
    import torch

    batch, length, n_labels = shape
    segments = torch.randn(batch, length, LONGEST, n_labels, requires_grad=True)
    transitions = torch.randn(n_labels, n_labels, requires_grad=True)
    if is_ours:
        from maxmargin.torch import Segments, crf_loss

        emissions, durations = torch.zeros(batch, length, 2, n_labels), torch.zeros(LONGEST, n_labels)
        y = torch.zeros(batch, length, dtype=torch.int64)

        def loss() -> Any:
            return crf_loss(Segments(emissions, transitions, durations, segments=segments), y, reduction="sum")

        return loss
    from torch_struct import SemiMarkovCRF

    first = torch.full((n_labels, n_labels), NEVER)  # of a label before the first segment, which is the first one
    first[:, 0] = 0

    def loss() -> Any:
        steps = transitions.T.expand(length - 1, n_labels, n_labels)  # of (next, previous) labels
        steps = torch.cat([first[None], steps])[:, None]
        own = torch.nn.functional.pad(segments, (0, 0, 1, 0))  # no segment has no rows
        potentials = own[..., None] + steps
        true = potentials[:, :, 1, 0, 0].sum()
        return SemiMarkovCRF(potentials).partition.sum() - true

    return loss


def tree_loss(shape: tuple[int, int, int], *, is_ours: bool, projective: bool) -> Callable[[], Any]:
    """The loss of trees where each word has the one before as its head."""
    import torch

    batch, length, _ = shape
    scores = torch.randn(batch, length, length + 1, requires_grad=True)
    if is_ours:
        from maxmargin.torch import Dependencies, crf_loss

        y = torch.arange(length).expand(batch, length)
        return lambda: crf_loss(Dependencies(scores, projective=projective), y, reduction="sum")
    from torch_struct import DependencyCRF, NonProjectiveDependencyCRF

    distribution = DependencyCRF if projective else NonProjectiveDependencyCRF
    words = torch.arange(length)

    def loss() -> Any:
        roots = torch.diag_embed(scores[:, :, 0])  # it has them on the diagonal, and heads in rows
        potentials = roots + scores[:, :, 1:].transpose(1, 2) * (1 - torch.eye(length))
        return distribution(potentials, multiroot=False).partition.sum() - scores[:, words, words].sum()

    return loss


def span_loss(shape: tuple[int, int, int], *, is_ours: bool) -> Callable[[], Any]:
    """The loss of binary trees that branch to the right, all of the first label."""
    import torch

    batch, length, n_labels = shape
    scores = torch.randn(batch, length, length + 1, n_labels, requires_grad=True)
    y = torch.full((batch, length, length + 1), -1)
    words = torch.arange(length)
    y[:, words, words + 1] = y[:, :, length] = 0
    if is_ours:
        from maxmargin.torch import SpanTrees, crf_loss

        return lambda: crf_loss(SpanTrees(scores + CERTAIN), y, reduction="sum")
    from torch_struct import TreeCRF

    return lambda: TreeCRF(scores[:, :, 1:]).partition.sum() - scores[..., 0][y == 0].sum()


def main() -> None:
    options = parse_arguments(
        __doc__,
        ("--structures", {"nargs": "+", "default": [*SHAPES], "choices": [*SHAPES]}),
        ("--repeats", {"type": int, "default": 5, "help": "passes, the fastest of which counts"}),
    )
    has_peer = importlib.util.find_spec("torch_struct") is not None
    names = ["maxmargin", *["torch-struct"] * has_peer]
    figures, bars = [], []
    for structure in options.structures:
        shape = SHAPES[structure]
        found = [in_fresh_process(measure, partial(passes, structure), name, shape, options.repeats) for name in names]
        for name, (milliseconds, megabytes, loss) in zip(names, found, strict=True):
            of_what = f"{structure}, {' x '.join(map(str, shape))}"
            figures.append({"structure": of_what, "": name, "ms": milliseconds, "MB": megabytes, "loss": loss})
        if has_peer:
            (ours, our_memory, _), (theirs, their_memory, _) = found
            ratio, share = theirs / ours, our_memory / their_memory
            bars.append(Bar(f"{structure}: {FASTER} times faster", f"{ratio:.1f}", ratio >= FASTER))
            bars.append(Bar(f"{structure}: a tenth of the memory", f"{share:.3f}", share <= 1 / LESS_MEMORY))
    print_table("Loss and gradient", figures[0], (figure.values() for figure in figures))
    report(figures, bars, options.json)


if __name__ == "__main__":
    main()
