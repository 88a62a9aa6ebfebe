"""What compilers of networks must leave alone: potentials and loops, made of arrays that they would misread."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.jit import is_tracing

WHY = (
    "maxmargin.torch runs in compiled loops of its own, which no trace or exported program can hold: export or trace "
    "the layers below, such as head.emissions, and make potentials of their outputs outside."
)

Some = TypeVar("Some", bound=Callable[..., Any])


def untraced(function: Some) -> Some:
    """A function that `torch.compile` calls as it is, between the graphs that it makes of the rest.

    Where there is nothing but a graph, in `torch.export`, in ONNX and in `torch.jit.trace`, it raises.
    """

    @functools.wraps(function)
    def run(*args: object, **kwargs: object) -> Any:
        if torch.compiler.is_compiling() or is_tracing():
            raise RuntimeError(WHY)
        return function(*args, **kwargs)

    takes_reason = "reason" in inspect.signature(torch.compiler.disable).parameters  # not before PyTorch 2.7
    return torch.compiler.disable(run, **({"reason": WHY} if takes_reason else {}))
