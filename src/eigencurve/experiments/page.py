"""What the pages of all experiments have: figures in one step, the searched settings in words, and the last line."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eigencurve._files import write_atomically
from eigencurve.runs.origin import origin_here


def winner_text(settings: Mapping[str, Any]) -> str:
    """The searched settings in a few words."""
    shown = [f"lr {settings['lr']:g}"]
    if "min_lr" in settings:
        shown.append("last rate free" if settings["min_lr"] is None else f"last {settings['min_lr']:g}")
    if "intervals" in settings:
        shown.append(f"{settings['intervals']} intervals, factor {settings['factor']:g}")
    for name, letter in (("r", "r"), ("ema_decay", "α"), ("alpha", "α")):
        if name in settings:
            shown.append(f"{letter} {settings[name]:.3g}")
    return ", ".join(shown)


def made_by(command: str) -> str:
    """The last line of a page: command, versions, revision."""
    origin = origin_here()
    versions = ", ".join(f"{name} {number}" for name, number in origin.versions.items())
    return f"Made by `{command}`; {versions}; revision {origin.revision or 'unknown'}."


def save_figure(figure: Any, path: Path) -> None:
    """Write a figure as PNG, in one step."""
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    write_atomically(path, buffer.getvalue())
