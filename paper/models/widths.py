"""Narrow networks: every width is divided by the same number."""

from __future__ import annotations

from paper import checks


def divided(function: str, widths: tuple[int, ...], divisor: int) -> tuple[int, ...]:
    """Each width // divisor, as in the paper (arXiv:2110.14109, "Settings for Eigencurve").

    Raises:
        ValueError: A width would be zero.

    >>> divided("vgg16", (64, 512), 8)
    (8, 64)
    """
    if min(widths) < checks.whole(function, "divisor", divisor, minimum=1):
        checks.refuse(function, "divisor", f"<= {min(widths)}, the smallest width", divisor)
    return tuple(width // divisor for width in widths)
