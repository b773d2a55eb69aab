"""Time and memory against the number of parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eigencurve.figures.canvas import Figure
from eigencurve.figures.style import style


def scaling_figure(
    dims: Sequence[int], times: Mapping[str, Sequence[float]], sizes: Mapping[str, Sequence[float]]
) -> Figure:
    """Draw times in one panel and sizes in another, on logarithmic axes.

    Args:
        dims: Numbers of parameters.
        times: CPU times in seconds for each of them, by label.
        sizes: Memory in GB for each of them, by label.
    """
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    panels = zip(figure.subplots(1, 2), (times, sizes), ("CPU time (s)", "memory (GB)"), strict=True)
    for axes, curves, label in panels:
        for place, (name, values) in enumerate(curves.items()):
            axes.plot(dims, values, marker="o", markersize=4, label=name, **style(place))
        axes.set(xscale="log", yscale="log", xlabel="parameters", ylabel=label)
        axes.legend(frameon=False, fontsize="small")
        axes.grid(alpha=0.3)
    return figure
