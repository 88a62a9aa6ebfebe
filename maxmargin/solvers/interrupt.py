"""Ctrl-C ends a run at its next safe point, with the best weights so far."""

from __future__ import annotations

import signal
import threading
from typing import Any


class Interruptible:
    """While active, Ctrl-C sets ``run.interrupted``, to stop at the next safe point; a second one raises.

    A run that is part of another one passes it on.
    """

    def __init__(self, run: Any) -> None:
        self.run = run
        self.was_pressed = False
        self.is_main = threading.current_thread() is threading.main_thread()  # only it receives signals

    def __enter__(self) -> None:
        if self.is_main:
            self.previous = signal.signal(signal.SIGINT, self._handle)

    def _handle(self, *_: Any) -> None:
        if self.run.interrupted:
            raise KeyboardInterrupt
        self.was_pressed = self.run.interrupted = True

    def __exit__(self, *_: Any) -> None:
        if self.is_main:
            signal.signal(signal.SIGINT, self.previous or signal.SIG_DFL)
            whole = getattr(self.previous, "__self__", None)
            if self.was_pressed and isinstance(whole, Interruptible):
                whole.was_pressed = whole.run.interrupted = True
