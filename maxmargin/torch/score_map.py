"""Networks as score maps: potentials of single examples, their derivatives, and their objective.

Examples are passed to the network one by one, as batches of one, since a linearized problem needs the derivatives of
each. The structure of all of them, without features, is joined into one problem.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, jacrev, vmap
from torch.nn.functional import pad
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from maxmargin.arrays.blocks import starts_of
from maxmargin.inference import scores_of
from maxmargin.losses import BaseLoss
from maxmargin.problem import part_sizes
from maxmargin.structures.derived.linearized import LinearizedProblem, linearized
from maxmargin.structures.derived.selected import NOTHING
from maxmargin.torch.autograd import Batch
from maxmargin.torch.choice_potentials import Candidates, Parts
from maxmargin.torch.label_potentials import Chains, LabelPotentials, Trees
from maxmargin.torch.linked.link_potentials import Matchings
from maxmargin.torch.potentials import Costs, Potentials
from maxmargin.torch.supervised.full_losses import structured_loss


class ScoreMap:
    """The potentials of examples as functions of the parameters of a network.

    Parameters
    ----------
    module
        The network; ``module(*inputs[i])`` makes `Chains`, `Trees`, `Candidates` or `Matchings` of one example.
    inputs
        For each example a tensor, or a tuple of what the network takes, as a batch of one.
    y
        For each example its true output, as a batch of one.
    cost
        For each example what outputs cost, or what holds for all; None for the default.
    is_rowwise
        Whether each row of an input makes potentials of its own, so that derivatives are found row by row.
    """

    def __init__(
        self, module: nn.Module, inputs: Sequence[object], y: Sequence[object], cost: Costs | None, is_rowwise: bool
    ) -> None:
        self.module, self.is_rowwise = module, is_rowwise
        self.inputs = [x if isinstance(x, tuple) else (x,) for x in inputs]
        self.parameters = {name: p for name, p in module.named_parameters() if p.requires_grad}
        if not self.parameters:
            raise ValueError("module must have parameters that require a gradient.")
        if not self.inputs or len(self.inputs) != len(y):
            raise ValueError(f"inputs and y must be as many, at least one, but are {len(self.inputs)} and {len(y)}.")
        with torch.no_grad():
            examples = [self._example(i) for i in range(len(self.inputs))]
        if is_rowwise and not all(
            isinstance(example, Candidates) and len(x) == 1 and x[0].shape[:2] == (1, example.sizes.sum())
            for example, x in zip(examples, self.inputs, strict=True)
        ):
            raise ValueError("is_rowwise is for networks that make Candidates of tensors (1, K, ...), a row for each.")
        self.places = [_places(example) for example in examples]
        self.n = len(examples)
        dtypes = {parameter.dtype for parameter in self.parameters.values()}
        self.dtype = np.dtype(np.float32 if dtypes == {torch.float32} else np.float64)
        joined, outputs, costs = join(examples, y, cost)
        self.problem = joined.problem(outputs, costs, self.dtype)
        self.counted = [_count_fixed(example) for example in examples]
        self.starts = starts_of(part_sizes(self.problem))
        self.n_weights = sum(parameter.numel() for parameter in self.parameters.values())

    def _example(self, i: int, parameters: object = None) -> Potentials:
        """The potentials of example i."""
        known: Any = self.parameters if parameters is None else parameters
        found = functional_call(self.module, known, self.inputs[i])
        if not isinstance(found, (Chains, Trees, Candidates, Matchings)) or found.n != 1:
            raise TypeError(f"module(*inputs[{i}]) must be Chains, Trees, Candidates or Matchings of one example.")
        return found

    @property
    def w(self) -> np.ndarray:
        """The parameters of the network."""
        return parameters_to_vector(self.parameters.values()).detach().cpu().double().numpy()

    @w.setter
    def w(self, values: np.ndarray) -> None:
        first = next(iter(self.parameters.values()))
        with torch.no_grad():
            vector_to_parameters(torch.as_tensor(values).to(first), self.parameters.values())

    def potentials(self) -> np.ndarray:
        """Those of the parts of all examples, one after the other, at the parameters of the network."""
        with torch.no_grad():
            rows = [_parts(self._example(i), places) for i, places in enumerate(self.places)]
        return torch.cat(rows).cpu().numpy().astype(self.dtype)

    def loss(self, loss: BaseLoss) -> float:
        """The mean loss at the parameters of the network."""
        potentials = torch.as_tensor(self.potentials().astype(np.float64))
        return float(structured_loss(Parts(self.problem, potentials), loss=loss, n_jobs=1))

    def derivatives(self, max_bytes: float = np.inf) -> np.ndarray:
        """The derivatives of the potentials of all parts, (sum of parts, d), at the parameters of the network."""
        n_bytes = int(self.starts[-1]) * self.n_weights * self.dtype.itemsize
        if n_bytes > max_bytes:
            raise ValueError(
                f"The derivatives of {self.starts[-1]} potentials by {self.n_weights} parameters would take "
                f"{n_bytes:,} bytes, but max_bytes is {max_bytes:,.0f}: hold the parameters of lower layers fixed, "
                "take fewer examples, or allow for more."
            )
        rows = np.zeros((int(self.starts[-1]), self.n_weights), self.dtype)
        detached = {name: parameter.detach() for name, parameter in self.parameters.items()}
        for i in range(self.n):
            rows[self.starts[i] : self.starts[i + 1]] = self._derivatives(i, detached)
        return rows

    def _derivatives(self, i: int, parameters: dict[str, Tensor]) -> np.ndarray:
        if self.is_rowwise:
            (x,) = self.inputs[i]  # (1, rows, ...)

            def of_row(known: object, row: Tensor) -> Tensor:
                return functional_call(self.module, known, (row[None, None],)).flat

            tables = vmap(jacrev(of_row), in_dims=(None, 0))(parameters, x[0])
            found = torch.cat([table.reshape(x.shape[1], -1) for table in tables.values()], dim=1)
        else:
            places = self.places[i]
            tables = jacrev(lambda known: _parts(self._example(i, known), places))(parameters)
            size = int(self.starts[i + 1] - self.starts[i])
            found = torch.cat([table.reshape(size, -1) for table in tables.values()], dim=1)
        return found.detach().cpu().numpy()

    def linearized(self, derivatives: np.ndarray, potentials: np.ndarray) -> LinearizedProblem:
        """The problem with potentials that are affine: these at zero weights, and their derivatives.

        The offset of the true output is taken off all outputs alike, so that it has none.
        """
        parts = Parts(self.problem, torch.as_tensor(potentials.astype(self.dtype)))
        scores = Batch(parts, n_jobs=1).infer(scores_of)
        offset = potentials.astype(np.float64)
        for i, (n_parts, n_held) in enumerate(self.counted):
            offset[self.starts[i] : self.starts[i] + n_parts] -= scores[i] / n_held
        return linearized(self.problem, derivatives, offset.astype(self.dtype))


def _places(example: Potentials) -> np.ndarray:
    """Where the potentials of the parts of the one example lie in its flat tensor; NOTHING for those that are zero."""
    pieces = zip(example.starts[0].tolist(), example.sizes[0].tolist(), strict=True)
    return np.concatenate([np.full(k, NOTHING) if at < 0 else np.arange(at, at + k) for at, k in pieces])


def _parts(example: Potentials, places: np.ndarray) -> Tensor:
    flat = example.flat
    found = flat[torch.as_tensor(np.maximum(places, 0), device=flat.device)]
    if (places >= 0).all():
        return found
    return torch.where(torch.as_tensor(places >= 0, device=flat.device), found, torch.zeros_like(found))


def _count_fixed(example: Any) -> tuple[int, int]:
    """The number of the first parts of which every output has the same number, and that number."""
    if isinstance(example, LabelPotentials):
        length = int(example.rows.lengths[0])
        return length * example.n_labels, length
    if isinstance(example, Candidates):
        return int(example.sizes.sum()), 1
    return int(example.sizes.sum()), int(example.sides[0, 0])


def join(examples: list[Any], y: Sequence[object], cost: Costs | None) -> tuple[Any, Any, Any]:
    """Batches of one as one batch: potentials, true outputs and costs."""
    outputs = [torch.as_tensor(np.asarray(output)) for output in y]
    first = examples[0]
    if isinstance(first, Matchings):
        sides = np.concatenate([example.sides for example in examples])
        most = sides.max(axis=0)
        tensors = [
            torch.cat([_pad(example.tensors[k], most[: 2 - k]) for example in examples])
            for k in range(len(first.tensors))
        ]
        return Matchings(tensors[0], sides, *tensors[1:]), torch.cat([_pad(o, most[:1]) for o in outputs]), cost
    labels = torch.cat([output.reshape(-1) for output in outputs])
    lengths = np.concatenate([example.rows.lengths for example in examples])
    packed = torch.cat([example.rows.pack(example.tensors[0]) for example in examples])
    if isinstance(first, Candidates):
        costs = None if cost is None else torch.cat([torch.as_tensor(np.asarray(c)).reshape(-1) for c in cost])
        return Candidates(packed, lengths), labels, costs
    if any(example.tensors[1].ndim == 4 for example in examples):
        raise ValueError("Tables of pairs must be shared by the steps of a sequence, or the edges of a tree.")
    tables = torch.stack([example.tensors[1].reshape(first.n_labels, -1) for example in examples])
    if isinstance(first, Chains):
        return Chains(packed, tables, lengths), labels, cost
    parents = np.concatenate([example.parent for example in examples])
    return Trees(packed, parents, tables.transpose(-1, -2), lengths), labels, cost


def _pad(tensor: Tensor, sizes: np.ndarray) -> Tensor:
    """A batch of one, with zeros up to the sizes of its other axes."""
    missing = [int(size - have) for size, have in zip(sizes, tensor.shape[1:], strict=True)]
    return pad(tensor, [number for size in reversed(missing) for number in (0, size)])
