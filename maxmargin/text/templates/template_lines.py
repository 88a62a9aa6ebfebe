"""Lines of templates, read: what is a feature of positions, what of transitions, and how names are made.

A line is a name with macros, of which the first letter says what it is a feature of: U of positions, B of transitions,
and * of both (in Wapiti, where small letters do as well). A macro stands for what is in a column of the token that is
`row` after the current one:

    %x[row,col]             as it is
    %t[row,col,"regex"]     true or false: whether the expression is found in it (Wapiti)
    %m[row,col,"regex"]     what was found, or nothing (Wapiti)

In capitals, %X, %T and %M, the result is in small letters. Rows are counted from the beginning of a sequence, or from
its end, if there is an @ before them. What is beyond the ends is _B-1, _B-2, _B+1 and so on, _x-1 in Wapiti. A % that
begins no macro is an error, as there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from maxmargin.wording import quote

MACRO = re.compile(r'%([a-zA-Z])\[\s*(@?)(-?\d+)\s*,\s*(\d+)\s*(?:,\s*"((?:[^"\\]|\\.)*)"\s*)?\]')
FARTHEST = 1000  # row
CLASSES = {  # of characters, in expressions of Wapiti; capitals are their complements
    "d": "0-9",
    "a": "A-Za-z",
    "w": "A-Za-z0-9",
    "l": "a-z",
    "u": "A-Z",
    "s": r"\s",
    "p": re.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"),
}

Column = Sequence[str]
Cell = Callable[[Sequence[Column], int], str]  # of the columns of a sentence, at a position


class Template(NamedTuple):
    """One line: its text, what it is a feature of, the texts between its macros, and what these stand for."""

    line: str
    of_positions: bool
    of_transitions: bool
    texts: list[str]
    cells: list[Cell]
    n_columns: int  # that it asks for

    def name(self, columns: Sequence[Column], t: int) -> str:
        """The name of the feature at a position."""
        parts = [self.texts[0]]
        for cell, text in zip(self.cells, self.texts[1:], strict=True):
            parts += (cell(columns, t), text)
        return "".join(parts)


def read_lines(text: str) -> list[Template]:
    """The templates in a text; raises where one is broken."""
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1)]
    lines = [(number, line) for number, line in lines if line and not line.startswith("#")]
    beyond = "_x" if any(_is_wapiti(line) for _, line in lines) else "_B"
    found = [_read_line(line, number, beyond) for number, line in lines]
    if not any(template.of_positions for template in found):
        raise ValueError("The template has no line of features of positions, such as U00:%x[0,0].")
    return found


def _is_wapiti(line: str) -> bool:
    return line[0] in "ub*" or any(kind != "x" or at for kind, at, *_ in MACRO.findall(line))


def _read_line(line: str, number: int, beyond: str) -> Template:
    kind, texts, cells, widths, end = line[0].lower(), [], [], [0], 0
    if kind not in "ub*":
        raise ValueError(f"Line {number} of the template must begin with U, B or *, but is {quote(line)}.")
    for macro in MACRO.finditer(line):
        texts.append(line[end : macro.start()])
        letter, at, row, column, expression = macro.groups()
        end = macro.end()
        wants_expression = letter.lower() in "tm"
        if letter.lower() not in "xtm" or abs(int(row)) > FARTHEST or (expression is not None) != wants_expression:
            raise ValueError(f"Line {number} of the template has a macro that is none, {quote(macro[0])}: {_FORMS}.")
        cells.append(_make_cell(letter, bool(at), int(row), int(column), expression, beyond, number))
        widths.append(int(column) + 1)
    texts.append(line[end:])
    if any("%" in part for part in texts):  # which CRF++ has in macros alone
        raise ValueError(f"Line {number} of the template has a broken macro, {quote(line)}: {_FORMS}.")
    return Template(line, kind in "u*", kind in "b*", texts, cells, max(widths))


_FORMS = 'it must be %x[row,col], %t[row,col,"regex"] or %m[row,col,"regex"]'


def _make_cell(
    letter: str, is_absolute: bool, row: int, column: int, expression: str | None, beyond: str, number: int
) -> Cell:
    """What a macro stands for."""
    pattern = None if expression is None else _compile(expression, number)
    is_lower, asks = letter.isupper(), letter.lower() == "t"

    def cell(columns: Sequence[Column], t: int) -> str:
        length = len(columns[0])
        place = t + row if not is_absolute else row if row >= 0 else length + row
        if place < 0:
            value = f"{beyond}{place}"
        elif place >= length:
            value = f"{beyond}+{place - length + 1}"
        else:
            value = columns[column][place]
        if pattern is not None:
            match = pattern.search(value)
            value = str(match is not None).lower() if asks else match[0] if match else ""
        return value.lower() if is_lower else value

    return cell


def _compile(expression: str, number: int) -> re.Pattern[str]:
    """An expression of Wapiti: classes of characters, ^, $, ., ? and *; all else stands for itself."""
    parts, k = [], 0
    while k < len(expression):
        character = expression[k]
        if character == "\\" and k + 1 < len(expression):
            k += 1
            name = expression[k]
            known = CLASSES.get(name.lower())
            inverse = "^" if name.isupper() else ""
            parts.append(re.escape(name) if known is None else f"[{inverse}{known}]")
        else:
            is_operator = (
                character in ".?*" or (character, k) == ("^", 0) or (character, k) == ("$", len(expression) - 1)
            )
            parts.append(character if is_operator else re.escape(character))
        k += 1
    try:
        return re.compile("".join(parts))
    except re.error as error:
        raise ValueError(f"Line {number} of the template has the expression {quote(expression)}: {error}.") from None
