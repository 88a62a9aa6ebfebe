"""What the last layers of networks share: the convex problem that each is, its certificate and its optimum."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from maxmargin.losses import BaseLoss, find_loss
from maxmargin.parameters import inherit_documentation
from maxmargin.problem import AnyProblem
from maxmargin.solvers import Result, Solver, find_solver
from maxmargin.solvers.objective.evaluation import Objective
from maxmargin.solvers.objective.lower_bound import LowerBound
from maxmargin.torch.autograd import dtype_of
from maxmargin.torch.potentials import Costs, Numbers
from maxmargin.trace import Certificate


class Head(nn.Module):
    """What all heads share. `forward` makes potentials of features, for losses and predictions of `maxmargin.torch`.

    Examples
    --------
    >>> import torch
    >>> from maxmargin.torch import CandidateHead, Head
    >>> head, features, best = CandidateHead(3), torch.eye(3)[None], torch.tensor([0])
    >>> result = head.solve(best, features, C=1.0, tol=1e-6)  # the head alone, as a model of the library
    >>> certificate = head.certificate(best, features, C=1.0)
    >>> isinstance(head, Head), bool(certificate.dual <= certificate.primal)
    (True, True)
    """

    def __init_subclass__(cls) -> None:
        inherit_documentation(cls)

    def weights(self) -> list[Tensor]:
        """The parameters in the order and orientation of the weights of the library, as views."""
        raise NotImplementedError

    def problem(
        self, y: Numbers, *inputs: Numbers | None, cost: Costs | None = None, dtype: npt.DTypeLike | None = None
    ) -> AnyProblem:
        """The library's problem of this layer, with the features that `forward` is given as they are."""
        with torch.no_grad():
            potentials = self(*inputs).ignoring(y)
        dtype = dtype_of(potentials.flat) if dtype is None else dtype
        return potentials.problem(y, cost, dtype)._replace(**self._features(potentials, dtype, *inputs))

    def _features(self, potentials: Any, dtype: npt.DTypeLike, features: Tensor, *others: object) -> dict[str, object]:
        """The fields of the problem that hold features."""
        raise NotImplementedError

    def bounds(self, size: int) -> np.ndarray | None:
        """Lower bounds of the weights, or None."""
        return None

    def certificate(
        self,
        y: Numbers,
        *inputs: Numbers | None,
        C: float = 1.0,
        loss: BaseLoss | str = "hinge",
        cost: Costs | None = None,
    ) -> Certificate:
        """The objective of the library at the weights of this layer, and a lower bound of its optimum.

        The objective is (lambda/2) ||w||^2 + the mean loss, lambda = 1/(n C). The bound is that of one dual point:
        tight at the optimum of smooth losses, rough for the hinge loss.

        Arguments are those of `solve`.
        """
        problem = self.problem(y, *inputs, cost=cost, dtype=np.float64)
        w = self._flat()
        objective = Objective(problem, C, loss=find_loss(loss), lower=self.bounds(w.size))
        found = objective.evaluate(w)
        dual = LowerBound(objective).add(found.cost + found.entropy, found.gradient)
        return Certificate(w, float(found.value), float(dual))

    def solve(
        self,
        y: Numbers,
        *inputs: Numbers | None,
        C: float = 1.0,
        loss: BaseLoss | str = "hinge",
        solver: Solver | str | None = None,
        cost: Costs | None = None,
        **options: Any,
    ) -> Result:
        """Train this layer alone to its optimum by a solver of the library, and take the weights over.

        Parameters
        ----------
        y
            True outputs.
        inputs
            What `forward` takes, in its order.
        C
            Inverse strength of the regularization.
        loss, cost
            As in `structured_loss`.
        solver
            Its name or a solver; by default "auto", or "lbfgs" for smooth losses.
        options
            Of `Solver.solve`.
        """
        chosen = find_loss(loss)
        found = find_solver(("lbfgs" if chosen.is_smooth else "auto") if solver is None else solver, chosen)
        problem = self.problem(y, *inputs, cost=cost)
        lower = self.bounds(self._flat().size)
        result = found.solve(problem, C, loss=chosen, lower=lower, **options)
        w, at = torch.as_tensor(result.w), 0
        with torch.no_grad():
            for weights in self.weights():
                weights.copy_(w[at : at + weights.numel()].view(weights.shape))
                at += weights.numel()
        return result

    def _flat(self) -> np.ndarray:
        parts = [weights.detach().cpu().numpy().ravel() for weights in self.weights()]
        return np.concatenate(parts).astype(np.float64)
