"""Axes of plots, without loading matplotlib until one is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SPACE = 0.04  # between panels, of the height of their axes


def new_axes(caller: str, size: tuple[float, float]) -> Axes:
    """Axes of a new figure; raises where matplotlib is not installed."""
    try:
        import matplotlib.pyplot as plt
    except ImportError as error:
        raise ImportError(f'{caller} needs matplotlib: pip install "maxmargin[plot]".') from error
    return plt.subplots(figsize=size, layout="constrained")[1]


def stack_panels(ax: Axes, heights: list[float], xlabel: str) -> list[Axes]:
    """Panels of these heights in the place of axes, from above, which share x: nothing runs into another subplot."""
    ax.set_axis_off()
    panels: list[Axes] = []
    top, unit = 1.0, (1 - SPACE * (len(heights) - 1)) / sum(heights)
    for height in heights:
        panels.append(ax.inset_axes((0, top - unit * height, 1, unit * height)))
        panels[-1].sharex(panels[0])
        panels[-1].tick_params(labelbottom=False)
        top -= unit * height + SPACE
    panels[-1].tick_params(labelbottom=True)
    panels[-1].set_xlabel(xlabel)
    return panels
