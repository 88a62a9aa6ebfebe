"""Small figures as SVG: curves, and tables as heat maps; colours are those of classes in the style sheet."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from maxmargin.display.markup import Markup, tag

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 640, 270, 64, 16, 28, 40
N_TICKS = 5


class Curve(NamedTuple):
    """Points of a curve, what it shows, and its class in the style sheet."""

    name: str
    x: np.ndarray
    y: np.ndarray
    style: str


class Scale(NamedTuple):
    """Where numbers are on an axis: from `first` to `last` pixels, of the numbers or of their logarithms."""

    low: float
    high: float
    first: float
    last: float
    is_log: bool

    def place(self, values: np.ndarray) -> np.ndarray:
        """The pixels of numbers."""
        at = np.log10(values) if self.is_log else values
        return self.first + (self.last - self.first) * (at - self.low) / (self.high - self.low)

    @property
    def ticks(self) -> np.ndarray:
        """Numbers to mark: powers of ten on a logarithmic axis, where there are two; else even ones."""
        powers = np.arange(np.ceil(self.low), np.floor(self.high) + 1)
        if not self.is_log:
            return even_ticks(self.low, self.high)
        return 10.0**powers if len(powers) > 1 else even_ticks(10.0**self.low, 10.0**self.high)


def even_ticks(low: float, high: float) -> np.ndarray:
    """Multiples of 1, 2 or 5 times a power of ten between two numbers, up to `N_TICKS` and a few.

    Examples
    --------
    >>> from maxmargin.display.figures import even_ticks
    >>> even_ticks(-0.05, 1.05).round(1).tolist()
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    power = 10.0 ** np.floor(np.log10((high - low) / N_TICKS))
    step = next(power * k for k in (1, 2, 5, 10) if power * k * (N_TICKS + 1) >= high - low)
    return step * np.arange(np.ceil(low / step), np.floor(high / step) + 1) + 0.0  # none of which is -0


def scale_of(values: np.ndarray, first: float, last: float, *, is_log: bool) -> Scale:
    """The scale that shows all of the values, with a margin."""
    at = np.log10(values) if is_log else values
    low, high = float(at.min()), float(at.max())
    margin = 0.05 * (high - low) or 0.5
    return Scale(low - margin, high + margin, first, last, is_log)


def draw_curves(
    curves: Sequence[Curve], x_title: str, y_title: str, *, name: str, log_x: bool = False, log_y: bool = False
) -> Markup:
    """Curves on common axes, with a legend; `name` tells those who cannot see it what it is.

    Points that a logarithmic axis cannot show are left out.
    """
    points = []
    for curve in curves:
        x, y = np.asarray(curve.x, float), np.asarray(curve.y, float)
        is_shown = np.isfinite(x) & np.isfinite(y) & ((x > 0) | (not log_x)) & ((y > 0) | (not log_y))
        points.append((x[is_shown], y[is_shown]))
    xs, ys = (np.concatenate(column) for column in zip(*points, strict=True))
    if not xs.size:
        return tag("p", "There is nothing to draw.")
    across = scale_of(xs, LEFT, WIDTH - RIGHT, is_log=log_x)
    up = scale_of(ys, HEIGHT - BOTTOM, TOP, is_log=log_y)
    marks = [
        tag("text", x_title, x=(LEFT + WIDTH - RIGHT) / 2, y=HEIGHT - 4, text_anchor="middle"),
        tag("text", y_title, x=4, y=14, class_="unit"),
    ]
    for tick, x in zip(across.ticks, across.place(across.ticks), strict=True):
        marks.append(tag("line", x1=f"{x:.1f}", x2=f"{x:.1f}", y1=TOP, y2=HEIGHT - BOTTOM, class_="grid"))
        marks.append(tag("text", f"{tick:.3g}", x=f"{x:.1f}", y=HEIGHT - BOTTOM + 16, text_anchor="middle"))
    for tick, y in zip(up.ticks, up.place(up.ticks), strict=True):
        marks.append(tag("line", x1=LEFT, x2=WIDTH - RIGHT, y1=f"{y:.1f}", y2=f"{y:.1f}", class_="grid"))
        marks.append(tag("text", f"{tick:.3g}", x=LEFT - 6, y=f"{y + 4:.1f}", text_anchor="end"))
    for curve, (x, y) in zip(curves, points, strict=True):
        drawn = " ".join(f"{a:.1f},{b:.1f}" for a, b in zip(across.place(x), up.place(y), strict=True))
        marks.append(tag("polyline", points=drawn, class_=f"curve {curve.style}"))
    names = [part for one in curves for part in (tag("tspan", one.name, class_=f"name {one.style}"), "\u2003")]
    marks.append(tag("text", *names[:-1], x=WIDTH - RIGHT, y=14, text_anchor="end"))
    return tag("svg", *marks, viewBox=f"0 0 {WIDTH} {HEIGHT}", role="img", aria_label=name, class_="figure")


def draw_table(names: Sequence[str], values: np.ndarray, *, name: str, row_title: str, column_title: str) -> Markup:
    """A square table of numbers as a heat map, NaN where there is none; each cell tells its number when pointed at."""
    cell, margin = 22, 28 + 7 * max(map(len, names))  # pixels
    said = f"{row_title} (rows), {column_title} (columns)"
    size = margin + cell * len(names) + 8
    width = max(size, 8 * len(said))
    largest = float(np.nanmax(np.abs(values), initial=0.0)) or 1.0
    marks = [
        tag("text", said, x=4, y=12, class_="unit"),
        *(
            tag("text", one, x=margin - 6, y=margin + cell * (k + 0.7), text_anchor="end")
            for k, one in enumerate(names)
        ),
        *(
            tag("text", one, transform=f"translate({margin + cell * (k + 0.7):g} {margin - 6}) rotate(-90)")
            for k, one in enumerate(names)
        ),
    ]
    for a, before in enumerate(names):
        for b, after in enumerate(names):
            value, place = values[a, b], {"x": margin + cell * b, "y": margin + cell * a}
            told = "ruled out" if np.isnan(value) else f"{value:+.2f}"
            shade = 0.0 if np.isnan(value) else abs(value) / largest
            style = "none" if np.isnan(value) else "plus" if value > 0 else "minus"
            title = tag("title", f"{before} → {after}: {told}")
            size_of = {"width": cell - 1, "height": cell - 1}
            marks.append(tag("rect", title, class_=f"cell {style}", fill_opacity=f"{shade:.2f}", **place, **size_of))
    return tag(
        "svg", *marks, viewBox=f"0 0 {width} {size}", width=width, role="img", aria_label=name, class_="figure heat"
    )
