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
    "}"
    "</style>"
)


def html_table(rows: Sequence[Mapping[str, str]], marked: int | None = None, wrap: bool = False) -> str:
    """Format rows as an HTML table with a header. Wide tables scroll.

    >>> html_table([{"a": "<1", "b": "2"}]).removeprefix(STYLE)
    '<div class="eigencurve"><table><tr><th>a</th><th>b</th></tr><tr><td>&lt;1</td><td>2</td></tr></table></div>'

    Args:
        rows: Cells of each row, by the name of their column.
        marked: Place of a row to emphasise.
        wrap: Whether long cells wrap. On a phone they always do.
    """
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    body = "".join(
        ('<tr class="marked">' if place == marked else "<tr>")
        + "".join(f"<td>{escape(value)}</td>" for value in row.values())
        + "</tr>"
        for place, row in enumerate(rows)
    )
    start = '<table class="wrap">' if wrap else "<table>"
    return f'{STYLE}<div class="eigencurve">{start}<tr>{head}</tr>{body}</table></div>'
