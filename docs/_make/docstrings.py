r"""Griffe extension that converts the docstrings of this project to Markdown.

Formulas (``.. math::`` and ``:math:`…```) become MathML, which browsers render without scripts. Roles such as
``:func:`…``` become links if the name is in the reference, and inline code otherwise. Doctests become code blocks.
"""

from __future__ import annotations

import re
from html import escape
from typing import Any

from griffe import Extension, NameResolutionError, Object
from latex2mathml.converter import convert

BLOCK = re.compile(r"^(?P<indent> *)\.\. math::[ \n]*(?P<tex>\S.*?)(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r":math:`(?P<tex>[^`]+)`")
ROLE = re.compile(r":(?:func|meth|class|mod|attr|data):`~?(?P<name>[\w.]+)`")
DOCTEST = re.compile(r"(?P<indent>^ *)>>> .*?(?=\n\s*\n|\Z)", re.MULTILINE | re.DOTALL)
LITERAL = re.compile(r"``(?P<text>[^`]+)``")
# Formulas go on one line of HTML, so that Markdown does not interpret their content.
NEWLINES = re.compile(r"\s*\n\s*")


class Markdown(Extension):
    """Converts each docstring once, after griffe has loaded its object."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Replace the text of the docstring by Markdown."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value, obj)


def as_markdown(text: str, obj: Object | None = None) -> str:
    """Convert the formulas, cross-references and doctests of a docstring to Markdown."""
    text = BLOCK.sub(lambda m: f"{m['indent']}{formula(m['tex'], 'block')}", text)
    text = INLINE.sub(lambda m: formula(m["tex"], "inline"), text)
    text = ROLE.sub(lambda m: reference(m["name"], obj), text)
    text = LITERAL.sub(r"`\g<text>`", text)
    return DOCTEST.sub(fenced, text)


def formula(tex: str, display: str) -> str:
    """Convert LaTeX to MathML; the source is kept in ``alttext``."""
    one_line = NEWLINES.sub(" ", tex.strip())
    drawn = convert(one_line, display=display).replace("<math ", f'<math alttext="{escape(one_line)}" ', 1)
    return f'<div class="formula">{drawn}</div>' if display == "block" else drawn


def reference(name: str, obj: Object | None) -> str:
    """A cross-reference, which falls back to inline code if the reference does not have the name."""
    try:
        target = name if obj is None or "." in name else obj.resolve(name)
    except NameResolutionError:
        target = f"eigencurve.{name}"
    return f'<autoref identifier="{target}" optional><code>{name}</code></autoref>'


def fenced(match: re.Match[str]) -> str:
    """A doctest as a code block with the same indentation."""
    indent = match["indent"]
    return f"{indent}```pycon\n{match[0]}\n{indent}```"
