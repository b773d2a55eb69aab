"""Tables as plain HTML, which renders faster than Streamlit's own tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

STYLE = (
    "<style>"
    ".eigencurve{overflow-x:auto}"
    ".eigencurve table{border-collapse:collapse;width:100%;font-size:.875rem;font-variant-numeric:tabular-nums}"
    ".eigencurve :is(th,td){padding:.25rem .5rem;text-align:left;white-space:nowrap;"
    "border-bottom:1px solid rgba(128,128,128,.3)}"
    ".eigencurve th{font-weight:400;opacity:.7}"
    ".eigencurve .marked td{font-weight:600;background:rgba(128,128,128,.12)}"
    ".eigencurve .wrap :is(th,td){white-space:normal;vertical-align:baseline}"
    "@media (max-width:480px){"
    ".eigencurve table{font-size:.8rem}"
    ".eigencurve :is(th,td){padding:.25rem .5rem .25rem 0;white-space:normal}"
    ".eigencurve .number{white-space:nowrap}"
    ".eigencurve .minor{display:none}"
    "}"
    "</style>"
)


def html_table(
    rows: Sequence[Mapping[str, str]], marked: int | None = None, wrap: bool = False, minor: Sequence[str] = ()
) -> str:
    """Format rows as an HTML table with a header. Wide tables scroll.

    >>> html_table([{"a": "<1 or 2", "b": "2"}]).removeprefix(STYLE)
    '<div class="eigencurve"><table><tr><th>a</th><th>b</th></tr><tr><td>&lt;1 or 2</td><td class="number">2</td></tr></table></div>'

    Args:
        rows: Cells of each row, by the name of their column.
        marked: Place of a row to emphasise.
        wrap: Whether long cells wrap. On a phone they always do.
        minor: Names of columns that a phone has no room for.
    """  # noqa: E501 -- one line of output
    head = "".join(_cell("th", name, ["minor"] if name in minor else []) for name in rows[0])
    body = "".join(
        ('<tr class="marked">' if place == marked else "<tr>")
        + "".join(_cell("td", value, _classes(name, value, minor)) for name, value in row.items())
        + "</tr>"
        for place, row in enumerate(rows)
    )
    start = '<table class="wrap">' if wrap else "<table>"
    return f'{STYLE}<div class="eigencurve">{start}<tr>{head}</tr>{body}</table></div>'


def _classes(name: str, value: str, minor: Sequence[str]) -> list[str]:
    """A cell without a space is a number or a word, which must not break at its hyphen."""
    return [*([] if " " in value else ["number"]), *(["minor"] if name in minor else [])]


def _cell(tag: str, text: str, classes: Sequence[str]) -> str:
    attribute = f' class="{" ".join(classes)}"' if classes else ""
    return f"<{tag}{attribute}>{escape(text)}</{tag}>"
