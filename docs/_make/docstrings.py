r"""A griffe extension: the docstrings of this project as Markdown, without a script from elsewhere.

Formulas (``.. math::`` and ``:math:`…```) become MathML, which browsers draw by themselves; ``:func:`…``` and its like
become links where the reference has the name, and code where it has not; doctests become code blocks.
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
# A formula on one line of HTML, so that Markdown looks for nothing in it.
NEWLINES = re.compile(r"\s*\n\s*")


class Markdown(Extension):
    """Rewrites every docstring once, when griffe has read its object."""

    def on_object(self, *, obj: Object, **_: Any) -> None:
        """Exchange the docstring's text for Markdown."""
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value, obj)


def as_markdown(text: str, obj: Object | None = None) -> str:
    """The text of a docstring with formulas, references and doctests in the site's terms."""
    text = BLOCK.sub(lambda m: f"{m['indent']}{formula(m['tex'], 'block')}", text)
    text = INLINE.sub(lambda m: formula(m["tex"], "inline"), text)
    text = ROLE.sub(lambda m: reference(m["name"], obj), text)
    text = LITERAL.sub(r"`\g<text>`", text)
    return DOCTEST.sub(fenced, text)


def formula(tex: str, display: str) -> str:
    """LaTeX as MathML, its source kept for those who copy it."""
    one_line = NEWLINES.sub(" ", tex.strip())
    drawn = convert(one_line, display=display).replace("<math ", f'<math alttext="{escape(one_line)}" ', 1)
    return f'<div class="formula">{drawn}</div>' if display == "block" else drawn


def reference(name: str, obj: Object | None) -> str:
    """A link that stays plain code where the reference has no such name."""
    try:
        target = name if obj is None or "." in name else obj.resolve(name)
    except NameResolutionError:
        target = f"eigencurve.{name}"
    return f'<autoref identifier="{target}" optional><code>{name}</code></autoref>'


def fenced(match: re.Match[str]) -> str:
    """A doctest as a code block at its own indentation."""
    indent = match["indent"]
    return f"{indent}```pycon\n{match[0]}\n{indent}```"
