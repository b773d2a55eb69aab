"""Values as Python code."""

from __future__ import annotations

from typing import Any


def literal(value: Any) -> str:
    r"""The Python code of a plain value, with strings in double quotes.

    Characters that cannot be printed are escaped. JSON would write an emoji as two halves, which Python does not join.

    >>> print(literal('a "🦔".npz'), literal("tab\t"), literal(0.1))
    "a \"🦔\".npz" "tab\t" 0.1
    """
    if not isinstance(value, str):
        return repr(value)
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(c if c.isprintable() else repr(c)[1:-1] for c in escaped) + '"'
