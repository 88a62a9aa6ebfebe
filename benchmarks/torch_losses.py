"""CRF losses of `maxmargin.torch` and their gradients, beside pytorch-crf and torch-struct, if these are installed.

The same potentials on all sides, 64 sequences of 50 positions and 20 labels, on one thread: CPU time of a forward and a
backward pass, the least of several, and the memory that a first pass in a fresh process takes.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable
from typing import Any

from benchmarks.common import Bar, forget_peak, in_fresh_process, parse_arguments, peak_megabytes, print_table, report

PEERS = {"pytorch-crf": "torchcrf", "torch-struct": "torch_struct"}
FASTER = {"pytorch-crf": 3, "torch-struct": 20}
LESS_MEMORY = 10  # than torch-struct


def passes(name: str, shape: tuple[int, int, int]) -> Callable[[], float]:
    """A function that takes the loss and its gradient."""
    import torch

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    torch.manual_seed(0)
    batch, length, n_labels = shape
    emissions = torch.randn(batch, length, n_labels, requires_grad=True)
    transitions = torch.randn(n_labels, n_labels, requires_grad=True)
    y = torch.randint(0, n_labels, (batch, length))
    if name == "maxmargin":
        from maxmargin.torch import Chains, crf_loss

        def loss() -> Any:
            return crf_loss(Chains(emissions, transitions), y, reduction="sum")
    elif name == "pytorch-crf":
        from torchcrf import CRF

        crf = CRF(n_labels, batch_first=True)
        with torch.no_grad():
            crf.transitions.copy_(transitions)
            crf.start_transitions.zero_()
            crf.end_transitions.zero_()

        def loss() -> Any:
            return -crf(emissions, y, reduction="sum")
    else:
        from torch_struct import LinearChainCRF

        steps = torch.zeros(batch, length - 1, n_labels, n_labels)  # of (next, previous) labels
        steps[torch.arange(batch)[:, None], torch.arange(length - 1), y[:, 1:], y[:, :-1]] = 1

        def loss() -> Any:
            potentials = transitions.T + emissions[:, 1:, :, None]
            first = torch.nn.functional.pad(emissions[:, :1, None, :], (0, 0, 0, 0, 0, length - 2))
            return -LinearChainCRF((potentials + first).contiguous()).log_prob(steps).sum()

    def both() -> float:
        value = loss()
        value.backward()
        return value.item()

    return both


def measure(
    passes: Callable[[str, tuple[int, int, int]], Callable[[], float]],
    name: str,
    shape: tuple[int, int, int],
    repeats: int,
) -> tuple[float, float, float]:
    """Milliseconds of CPU time, megabytes of the first pass, and the loss."""
    if name == "maxmargin":
        passes(name, (1, 2, shape[2]))()  # compiles
    both, before = passes(name, shape), forget_peak()
    value = both()
    memory, times = peak_megabytes() - before, []
    for _ in range(repeats):
        began = time.process_time()
        both()
        times.append(time.process_time() - began)
    return 1e3 * min(times), memory, value


def main() -> None:
    options = parse_arguments(
        __doc__,
        (
            "--shape",
            {"type": int, "nargs": 3, "default": [64, 50, 20], "metavar": "N", "help": "batch, length, labels"},
        ),
        ("--repeats", {"type": int, "default": 10, "help": "passes, the fastest of which counts"}),
    )
    names = ["maxmargin", *(name for name, module in PEERS.items() if importlib.util.find_spec(module))]
    shape = tuple(options.shape)
    found = {name: in_fresh_process(measure, passes, name, shape, options.repeats) for name in names}
    columns = ("", "ms", "MB", "loss")
    print_table(f"Loss and gradient, {' x '.join(map(str, shape))}", columns, ((name, *found[name]) for name in names))
    bars = []
    for name in names[1:]:
        ratio = found[name][0] / found["maxmargin"][0]
        bars.append(Bar(f"{FASTER[name]} times faster than {name}", f"{ratio:.1f}", ratio >= FASTER[name]))
    if "torch-struct" in found:
        share = found["maxmargin"][1] / found["torch-struct"][1]
        bars.append(Bar("a tenth of the memory of torch-struct", f"{share:.3f}", share <= 1 / LESS_MEMORY))
    report({name: dict(zip(columns[1:], found[name], strict=True)) for name in names}, bars, options.json)


if __name__ == "__main__":
    main()
