"""Random outputs, drawn from p(y) ~ exp score(y)."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from maxmargin import inference
from maxmargin.checks import check_count
from maxmargin.problem import sample_oracle
from maxmargin.runtime.dispatch import supports
from maxmargin.torch.autograd import Batch
from maxmargin.torch.potentials import Potentials
from maxmargin.torch.untraced import untraced


@untraced
def sample(
    potentials: Potentials, n_samples: int, *, generator: torch.Generator | None = None, n_jobs: int | None = None
) -> Tensor:
    """Independent outputs of all examples from p(y) ~ exp score(y), each of the shape of true ones; no derivatives.

    They depend on `torch.manual_seed`, or on a generator of PyTorch. Potentials are `Chains`, `Segments`, `Alignments`,
    `Dependencies` or `SpanTrees`: others have no samples.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import Chains, sample
    >>> sample(Chains(torch.zeros(2, 5, 3), torch.zeros(3, 3)), 4).shape
    torch.Size([4, 2, 5])
    """
    check_count("n_samples", n_samples)
    batch = Batch(potentials, n_jobs=n_jobs)
    if not supports(sample_oracle, batch.runner.problem):
        raise ValueError(f"{type(potentials).__name__} have no samples: decode finds the best output.")
    _, reached = batch.infer(inference.scored_outputs)
    batch.check_possible(reached)
    rng = np.random.default_rng(int(torch.randint(2**62, (), generator=generator)))
    drawn = batch.infer(inference.samples, n_samples, rng)
    rows = [potentials.arranged([outputs[j] for outputs in drawn]) for j in range(n_samples)]
    return torch.stack(rows).to(batch.flat.device)
