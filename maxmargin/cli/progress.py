"""The progress of a training, as it goes on: one line in a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

from rich.live import Live
from rich.spinner import Spinner

from maxmargin.cli.terminal import Terminal
from maxmargin.estimators.syntax.dependency_models import DependencyModel
from maxmargin.runtime.cache import COMPILING, before_compiling
from maxmargin.tagger.entity_scores import TaggingModel
from maxmargin.trace import NO_WEIGHTS, Certificate, Trace

REFRESHED = 0.1  # seconds, at least, between two certificates that a terminal shows
INTERVAL = 5.0  # the same of lines that are not in a terminal


class Progress:
    """Shows the last certificate of a trace: objective, certified gap and, if there is one, the held-out score.

    Parameters
    ----------
    score
        What the held-out score is called.
    is_quiet
        Whether to show nothing.
    """

    def __init__(self, score: str, *, is_quiet: bool) -> None:
        self.score, self.is_quiet = score, is_quiet
        self.console = Terminal(stderr=True)
        self.spinner = Spinner("dots", " reading features")
        # no thread of its own: beside it features could not be read on several processes
        self.live = Live(self.spinner, console=self.console, transient=True, auto_refresh=False)
        self.compiling = before_compiling(self._tell_of_compiling)
        self.next, self.best = 0.0, -1.0

    def __enter__(self) -> Self:
        self.compiling.__enter__()
        if self.is_live:
            self.live.start(refresh=True)
        return self

    def __exit__(
        self, error: type[BaseException] | None, value: BaseException | None, where: TracebackType | None
    ) -> None:
        self.compiling.__exit__(None, None, None)
        if self.is_live:
            self.live.stop()

    def _tell_of_compiling(self) -> None:
        if self.is_live:
            self._show(COMPILING)
        elif not self.is_quiet:
            self.console.print(COMPILING)

    @property
    def is_live(self) -> bool:
        """Whether there is a terminal to write to."""
        return self.console.is_terminal and not self.is_quiet

    def __call__(self, trace: Trace) -> None:
        """Show the last certificate of a trace."""
        self.best = max(self.best, trace.last("dev_score"))
        if self.is_quiet or time.monotonic() < self.next:
            return
        show = self._show if self.is_live else self.say
        show(self.line(trace))
        self.next = time.monotonic() + (REFRESHED if self.is_live else INTERVAL)

    def _show(self, message: str) -> None:
        """Put a message in the place of the one that is live."""
        self.spinner.update(text=f" {message}")
        self.live.refresh()

    def say(self, message: str) -> None:
        """Print a line above what is live."""
        if not self.is_quiet:
            self.console.print(message, soft_wrap=True)

    def line(self, trace: Trace) -> str:
        """The last certificate."""
        primal = trace.last("primal")
        relative = Certificate(NO_WEIGHTS, primal, trace.last("dual")).relative_gap
        parts = [
            f"pass {trace.last('passes'):4.0f}",
            f"objective {primal:.6f}",
            f"certified gap {100 * relative:.3g} %",
            f"{trace.last('seconds'):.0f} s",
        ]
        if trace.has_dev_scores:
            parts.insert(3, f"held-out {self.score} {100 * trace.last('dev_score'):.2f} (best {100 * self.best:.2f})")
        return "  ".join(parts)


def summary(model: TaggingModel | DependencyModel) -> str:
    """What a training has led to."""
    passes, seconds = (model.trace_.last(name) for name in ("passes", "seconds"))
    why = f"{model.status_.name}: {model.status_.value}"
    return f"{passes:.0f} passes in {seconds:.1f} s: {model.certificate_} ({why})."
