"""Figures as inline SVG that takes its colours from the page, so it suits light mode, dark mode and print."""

from __future__ import annotations

import re

from eigencurve._html import Markup, tag
from eigencurve.figures.canvas import Figure, figure_bytes
from eigencurve.figures.style import COLOURS

# Limits the width of a figure so that its text is no larger than the small text of the page.
POINTS_PER_REM = 10.4
# Colours of the figure and the page's colours that replace them: text, background, grid, and curves.
THEMED = {
    "#000000": "currentColor",
    "#ffffff": "var(--page)",
    "#b0b0b0": "var(--grid)",
    **{colour.lower(): f"var(--c{i})" for i, colour in enumerate(COLOURS) if colour.lower() != "#000000"},
}


def inline_svg(figure: Figure, name: str, description: str) -> Markup:
    """Convert a figure to an ``<svg>`` element.

    Args:
        figure: A matplotlib figure from :mod:`eigencurve.figures`.
        name: Prefix of the identifiers in the SVG, unique on the page.
        description: Text for screen readers.
    """
    figure.set_facecolor("none")
    text = figure_bytes(figure, ".svg").decode()
    inner = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    inner = re.sub(r"<metadata>.*?</metadata>", "", inner, flags=re.DOTALL)
    inner = re.sub(r'\b(id="|url\(#|xlink:href="#|href="#)', rf"\g<1>{name}-", inner)
    inner = re.sub("#[0-9a-fA-F]{6}", lambda colour: THEMED.get(colour[0].lower(), colour[0]), inner)
    inner = inner.replace("xlink:href", "href")
    width, height = (72 * side for side in figure.get_size_inches())
    return tag(
        "svg", tag("title", description), Markup(inner), viewBox=f"0 0 {width:g} {height:g}", role="img",
        aria_label=description, style=f"max-width:{width / POINTS_PER_REM:.1f}rem",
    )  # fmt: skip
