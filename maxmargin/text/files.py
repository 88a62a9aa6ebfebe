"""The lines of files to read, and files to write to: paths, or files that are open."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, NoReturn


class Lines:
    """The lines of a file and, for messages, its name; of any line ends, without the mark at the beginning of UTF-8."""

    def __init__(self, source: Any, encoding: str, name: str | None = None) -> None:
        is_open = hasattr(source, "read")
        self.name = name or str(getattr(source, "name", "the stream") if is_open else source)
        content = source.read() if is_open else Path(source).read_bytes()
        try:
            text = content.decode(encoding) if isinstance(content, bytes) else content
        except UnicodeDecodeError as error:
            line = 1 + content.count(b"\n", 0, error.start)
            self.fail(line, f"it is not {encoding}: pass the encoding of the file")
        self.lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return enumerate(self.lines, start=1)

    def fail(self, line: int, problem: str) -> NoReturn:
        """Raise an error at a line."""
        raise ValueError(f"{self.name}, line {line}: {problem}.")

    def check_any(self, found: list[Any], what: str) -> None:
        """Raise an error unless something was found."""
        if not found:
            raise ValueError(f"{self.name} holds no {what}.")


def write_lines(target: Any, lines: Iterable[str]) -> None:
    """Write lines to a path, in UTF-8, or to an open text file; nothing, if making them raises an error."""
    text = "".join(f"{line}\n" for line in lines)
    if hasattr(target, "write"):
        target.write(text)
    else:
        Path(target).write_bytes(text.encode())
