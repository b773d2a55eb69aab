"""One self-contained HTML page without network access or scripts, for screen, phone and print, light and dark.

Only this module turns text into HTML: everything that is not :class:`Markup` is escaped.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


@dataclass(frozen=True)
class Section:
    """A part of the page with its own heading."""

    title: str
    blocks: Sequence[Markup]


def escaped(text: str) -> Markup:
    """Escape ``text`` for HTML. Markup stays unchanged."""
    return text if isinstance(text, Markup) else Markup(html.escape(text))


def tag(name: str, *children: str, **attributes: object) -> Markup:
    """Build an HTML element. ``class_`` becomes ``class``, and ``aria_label`` becomes ``aria-label``.

    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    words = [f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"' for key, value in attributes.items()]
    return Markup(f"<{name}{''.join(words)}>{''.join(map(escaped, children))}</{name}>")


def paragraph(text: str, **attributes: str) -> Markup:
    """Build a paragraph; parts of ``text`` in backticks become code.

    >>> paragraph("Run `make`.")
    '<p>Run <code>make</code>.</p>'
    """
    parts = [text] if isinstance(text, Markup) else text.split("`")
    return tag("p", *(tag("code", part) if i % 2 else part for i, part in enumerate(parts)), **attributes)


def facts(pairs: Sequence[tuple[str, str]]) -> Markup:
    """Build a list of names and values."""
    return tag("dl", *(tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs))


def table(
    caption: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    text_columns: int = 1,
    marked: int | None = None,
) -> Markup:
    """Build a table. Wide tables scroll.

    Args:
        caption: Text above the table.
        columns: Names of the columns.
        rows: Cells of every row.
        text_columns: Number of columns that hold text; the others, on the right, hold numbers.
        marked: Place of a row to emphasise.
    """
    align = ["text" if i < text_columns else "number" for i in range(len(columns))]
    head = tag("tr", *(tag("th", name, scope="col", class_=way) for name, way in zip(columns, align, strict=True)))
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            *(tag("td", cell, class_=way) for cell, way in zip(row[1:], align[1:], strict=True)),
            **({"class_": "marked"} if place == marked else {}),
        )
        for place, row in enumerate(rows)
    ]
    whole = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return tag("div", whole, class_="scroll", role="region", aria_label=caption, tabindex="0")


def figure(picture: Markup, caption: str) -> Markup:
    """Build a figure with a caption. The picture contains its own description for screen readers."""
    return tag("figure", picture, tag("figcaption", caption))


def code_block(text: str) -> Markup:
    """Build a block of preformatted text, such as code."""
    return tag("pre", tag("code", text), tabindex="0")


def page(title: str, sections: Sequence[Section], intro: str = "") -> str:
    """Build the HTML document.

    Args:
        title: Title of the page.
        sections: Sections, listed in the contents if there are several.
        intro: Paragraph under the title.
    """
    named = {f"section-{place}": section for place, section in enumerate(sections)}
    links = [tag("li", tag("a", section.title, href=f"#{name}")) for name, section in named.items()]
    contents = tag("nav", tag("ul", *links), aria_label="Contents") if len(sections) > 1 else Markup("")
    parts = [
        tag("section", tag("h2", section.title, id=name), *section.blocks, aria_labelledby=name)
        for name, section in named.items()
    ]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{html.escape(title)}</title><style>{files('eigencurve').joinpath('_page.css').read_text()}</style>"
    )
    header = tag("header", tag("h1", title), *([paragraph(intro)] if intro else []), contents)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{header}{tag("main", *parts)}</body></html>\n'
