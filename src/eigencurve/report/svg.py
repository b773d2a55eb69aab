"""Figures as inline SVG that takes its colours from the page: light on dark, dark on light, plain on paper."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from eigencurve.figures.files import figure_bytes
from eigencurve.figures.style import COLOURS
from eigencurve.report.page import Markup, tag

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# A figure is at most as wide as makes its letters as large as the page's small ones.
POINTS_PER_REM = 10.4
# Black is the page's ink, white its ground, matplotlib's grey its grid; the colours of curves are the page's own.
THEMED = {
    "#000000": "currentColor",
    "#ffffff": "var(--page)",
    "#b0b0b0": "var(--grid)",
    **{colour.lower(): f"var(--c{i})" for i, colour in enumerate(COLOURS) if colour.lower() != "#000000"},
}


def inline_svg(figure: Figure, name: str, description: str) -> Markup:
    """A figure as an ``<svg>`` element.

    Args:
        figure: from :mod:`eigencurve.figures`.
        name: unlike that of every other figure of the page; its identifiers begin with it.
        description: what the figure shows, for those who cannot see it.
    """
    figure.set_facecolor("none")
    text = figure_bytes(figure, ".svg").decode()
    inner = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    inner = re.sub(r"<metadata>.*?</metadata>", "", inner, flags=re.DOTALL)
    inner = re.sub(r'\b(id="|url\(#|xlink:href="#|href="#)', rf"\g<1>{name}-", inner)
    inner = re.sub("#[0-9a-fA-F]{6}", lambda found: THEMED.get(found[0].lower(), found[0]), inner)
    inner = inner.replace("xlink:href", "href")
    width, height = (72 * side for side in figure.get_size_inches())
    return tag(
        "svg", tag("title", description), Markup(inner), viewBox=f"0 0 {width:g} {height:g}", role="img",
        aria_label=description, style=f"max-width:{width / POINTS_PER_REM:.1f}rem",
    )  # fmt: skip
