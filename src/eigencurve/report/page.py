"""One self-contained HTML page without network access or scripts, for screen, phone and print, light and dark.

Only this module turns text into HTML: everything that is not :class:`Markup` is escaped.
"""

from __future__ import annotations

import html
import re
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


def tag(name: str, *children: str, **attributes: str | bool) -> Markup:
    """Build an HTML element. ``class_`` becomes ``class``, and ``aria_label`` becomes ``aria-label``.

    >>> tag("p", "a < b", class_="note")
    '<p class="note">a &lt; b</p>'
    """
    words = [f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"' for key, value in attributes.items()]
    return Markup(f"<{name}{''.join(words)}>{''.join(map(escaped, children))}</{name}>")


def paragraph(*parts: str) -> Markup:
    """Build a paragraph."""
    return tag("p", *parts)


def note(*parts: str) -> Markup:
    """Build a highlighted paragraph for a warning."""
    return tag("p", *parts, class_="note")


def facts(pairs: Sequence[tuple[str, str]]) -> Markup:
    """Build a list of names and values."""
    rows = [tag("div", tag("dt", name), tag("dd", value)) for name, value in pairs]
    return tag("dl", *rows)


def with_commands(text: str) -> list[str]:
    """The parts of ``text``; those in backticks become code.

    >>> with_commands("Run `make`.")
    ['Run ', '<code>make</code>', '.']
    """
    return [tag("code", part) if place % 2 else part for place, part in enumerate(text.split("`"))]


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
    head = tag("tr", *(tag("th", name, scope="col", class_=_align(i, text_columns)) for i, name in enumerate(columns)))
    body = [
        tag(
            "tr",
            tag("th", row[0], scope="row"),
            *(tag("td", cell, class_=_align(i, text_columns)) for i, cell in enumerate(row[1:], start=1)),
            **({"class_": "marked"} if place == marked else {}),
        )
        for place, row in enumerate(rows)
    ]
    whole = tag("table", tag("caption", caption), tag("thead", head), tag("tbody", *body))
    return tag("div", whole, class_="scroll", role="region", aria_label=caption, tabindex="0")


def figure(picture: Markup, caption: str) -> Markup:
    """Build a figure with a caption. The picture contains its own description for screen readers."""
    return tag("figure", picture, tag("figcaption", caption))


def side_by_side(*blocks: Markup) -> Markup:
    """Place figures next to each other if there is room."""
    return tag("div", *blocks, class_="beside")


def code_block(text: str) -> Markup:
    """Build a block of preformatted text, such as code."""
    return tag("pre", tag("code", text), tabindex="0")


def page(title: str, intro: Sequence[Markup], sections: Sequence[Section], lead: Section | None = None) -> str:
    """Build the HTML document.

    Args:
        title: Title of the page.
        intro: Paragraphs under the title.
        sections: Sections, listed in the contents.
        lead: Section above the contents, if there is one.
    """
    leads = [] if lead is None else [lead]
    names = _anchors([*leads, *sections])
    first = [_section(section, name) for section, name in zip(leads, names[: len(leads)], strict=True)]
    named = list(zip(sections, names[len(leads) :], strict=True))
    links = [tag("li", tag("a", section.title, href=f"#{name}")) for section, name in named]
    contents = tag("nav", tag("ul", *links), aria_label="Contents") if len(sections) > 1 else Markup("")
    parts = [_section(section, name) for section, name in named]
    head = (
        '<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{html.escape(title)}</title><style>{_style()}</style>"
    )
    body = tag("header", tag("h1", title), *intro) + tag("main", *first, contents, *parts)
    return f'<!doctype html>\n<html lang="en"><head>{head}</head><body>{body}</body></html>\n'


def _section(section: Section, name: str) -> Markup:
    return tag("section", tag("h2", section.title, id=name), *section.blocks, aria_labelledby=name)


def _style() -> str:
    return files("eigencurve.report").joinpath("page.css").read_text()


def _align(column: int, text_columns: int) -> str:
    return "text" if column < text_columns else "number"


def _anchors(sections: Sequence[Section]) -> list[str]:
    words = [re.sub(r"[^a-z0-9]+", "-", section.title.lower()).strip("-") or "section" for section in sections]
    return [word if words.index(word) == i else f"{word}-{i}" for i, word in enumerate(words)]
