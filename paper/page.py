"""The page that every experiment returns: Markdown text, its figures, and plain values."""

from __future__ import annotations

import io
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from eigencurve.runs import origin_here
from paper.files import write_atomically


@dataclass(frozen=True, eq=False)
class ResultsPage:
    """A page of results."""

    name: str  # file name without the suffix, relative to the output folder, such as `"theory/rates"`
    title: str  # title of the page
    body: str  # Markdown text below the title
    # Matplotlib figures to save as PNG, by file name relative to the page.
    figures: Mapping[str, Any] = field(default_factory=dict)
    # Contents of further files, by file name relative to the page.
    files: Mapping[str, bytes] = field(default_factory=dict)
    # Plain values for `--json`; if empty, the text is printed instead.
    values: Mapping[str, Any] = field(default_factory=dict)

    def text(self, made_by: str) -> str:
        """The whole page in Markdown; ``made_by`` is its last line (see :func:`made_by_line`)."""
        return f"# {self.title}\n\n{self.body.strip()}\n\n{made_by}\n"

    def write(self, folder: Path, made_by: str) -> list[Path]:
        """Write the page and its files below ``folder``, each atomically, and return their paths, the page first."""
        page = folder / f"{self.name}.md"
        contents = {page: self.text(made_by).encode()}
        contents |= {page.parent / name: content for name, content in self.files.items()}
        contents |= {page.parent / name: _png(figure) for name, figure in self.figures.items()}
        for path, content in contents.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, content)
        return list(contents)


def published_numbers(table: str) -> dict[str, Any]:
    """The numbers of one of the paper's tables, from ``published.toml``."""
    tables: dict[str, dict[str, Any]] = tomllib.loads(Path(__file__).with_name("published.toml").read_text("utf-8"))
    return tables[table]


def page_with_figure(name: str, title: str, figure: Any, text: str) -> ResultsPage:
    """A page that begins with its only figure; ``name`` may be in a folder."""
    file = f"{Path(name).name}.png"
    return ResultsPage(name, title, f"![{Path(name).name}]({file})\n\n{text}", {file: figure})


def made_by_line(command: str) -> str:
    """The line that states how a page was made: the exact command, the date, the versions and the revision."""
    origin = origin_here()
    versions = ", ".join(f"{name} {number}" for name, number in origin.versions.items())
    return f"Made by `{command}` on {datetime.now(UTC):%Y-%m-%d}; {versions}; revision {origin.revision or 'unknown'}."


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table.

    >>> print(markdown_table(["schedule", "loss"], [["cosine", "0.1"]]))
    | schedule | loss |
    | --- | --- |
    | cosine | 0.1 |
    """
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def epochs_text(count: int) -> str:
    """``"1 epoch"``, ``"2 epochs"``."""
    return f"{count} epoch" + ("s" if count != 1 else "")


def _png(figure: Any) -> bytes:
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", dpi=110)
    return buffer.getvalue()
