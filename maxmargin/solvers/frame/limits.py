"""When a run is to end."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from maxmargin.checks import check_positive


@dataclass(frozen=True)
class Limits:
    """When a run is to end: at a relative, or an absolute, duality gap, after passes, after seconds."""

    tol: float = 1e-3
    abs_tol: float = 0.0
    max_passes: float = np.inf
    time_limit: float | None = None

    def __post_init__(self) -> None:
        check_positive("tol", self.tol)
        for name in ("max_passes", "time_limit"):
            if getattr(self, name) is not None:
                check_positive(name, getattr(self, name), allow_infinite=True)
