"""The terminal, as files and models may write to it: in characters, not in commands."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.text import Text

from maxmargin.cli.common import plain


class Terminal(Console):
    """A console that takes all strings, in tables, too, for what they say: for no markup, emoji or control sequence."""

    def __init__(self, **options: Any) -> None:
        super().__init__(highlight=False, emoji=False, markup=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        return super().render_str(plain(text), **options)

    def on_broken_pipe(self) -> None:
        """Raise as `print` does, where Rich would end the process; messages may go unread."""
        self.quiet = True
        if not self.stderr:
            raise BrokenPipeError
