"""The code blocks of a page, run as a reader would run them.

``python docs/_make/blocks.py docs/start.md`` runs a page and says where what it prints is no longer what the page
shows; with ``--write`` the page is brought up to date. What a fence says decides what is done with a block:

- ``python``: run, all blocks of a page one after the other in one namespace, in an empty folder;
- an HTML comment whose first line is ``<!-- setup``: run as ``python``, and not shown to the reader. It makes the names
  that a fragment takes for granted;
- ``python title="train.py"``: written to that file;
- ``sh``: run by a shell in that folder;
- ``text`` right after one of these: what it prints. Numbers may differ by a twentieth, measured ones by their error,
  times by anything, and a line ``...`` stands for any number of lines;
- any language with ``title="not run: <reason>"``: shown to the reader with its reason, and left alone.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import traceback
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

FENCE = re.compile(
    r"^```(?P<language>[a-z]+)?(?: title=\"(?P<title>[^\"]*)\")?[^\n]*\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL
)
SETUP = re.compile(r"^<!-- setup\n(?P<code>.*?)^-->$", re.MULTILINE | re.DOTALL)
NOT_RUN = "not run: "
SHADES = re.compile("[ ▁▂▃▄▅▆▇█]*[▁▂▃▄▅▆▇█][ ▁▂▃▄▅▆▇█]*")
TIME = re.compile(r"\b\d+(?:\.\d+)? (?:ms|s|seconds|min)\b")
NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
MEASURED = re.compile(rf"({NUMBER.pattern}) \+- ({NUMBER.pattern})")
TOLERANCE = 0.05


@dataclass(frozen=True)
class Block:
    """A code block of a page.

    Attributes:
        language: ``python``, ``sh``, ``text``, another, or empty.
        title: what stands above it.
        code: its lines.
        line: of the page, where the code begins.
        span: of the code in the page's text.
        shown: the output that the page shows for it, as a block of its own; None where it shows none.
    """

    language: str
    title: str
    code: str
    line: int
    span: tuple[int, int]
    shown: Block | None = None

    @property
    def reason(self) -> str | None:
        """Why it is not run; None where it is, or where there is nothing to run."""
        return self.title.removeprefix(NOT_RUN) if self.title.startswith(NOT_RUN) else None

    @property
    def is_file(self) -> bool:
        """Whether it is the content of a file."""
        return bool(self.title) and self.reason is None

    @property
    def is_run(self) -> bool:
        """Whether it is run, and may so have an output."""
        return self.language in {"python", "sh"} and not self.title


class BlockError(Exception):
    """A block that fails; the page and line are in the message."""


def blocks_of(text: str) -> list[Block]:
    """The blocks of a page in their order; outputs are with the block that prints them."""
    found: list[Block] = []
    for match in sorted([*FENCE.finditer(text), *SETUP.finditer(text)], key=lambda match: match.start()):
        line = text.count("\n", 0, match.start("code")) + 1
        words = {"language": "python", "title": "", **match.groupdict()}
        block = Block(words["language"] or "", words["title"] or "", match["code"], line, match.span("code"))
        gap = text[found[-1].span[1] : match.start()] if found else "x"
        if block.language == "text" and found and found[-1].is_run and gap.strip() in {"```", ""}:
            found[-1] = replace(found[-1], shown=block)
        else:
            found.append(block)
    return found


def run_page(path: Path) -> list[tuple[Block, str]]:
    """Run the blocks of a page in the current folder; each with what it printed.

    Raises:
        BlockError: a block failed.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    sys.path[0] = ""  # the files of the page, not those of this folder
    return [(block, _run(block, path, namespace)) for block in blocks_of(path.read_text()) if block.reason is None]


def _run(block: Block, path: Path, namespace: dict[str, Any]) -> str:
    if block.is_file:
        Path(block.title).write_text(block.code)
        return ""
    if block.language == "python":
        return _run_python(block, path, namespace)
    return _run_shell(block, path) if block.language == "sh" else ""


def _run_python(block: Block, path: Path, namespace: dict[str, Any]) -> str:
    program = compile("\n" * (block.line - 1) + block.code, str(path), "exec")
    printed = io.StringIO()
    try:
        with contextlib.redirect_stdout(printed):
            exec(program, namespace)
    except Exception:
        raise BlockError(f"{path}:{block.line}: this block fails\n{traceback.format_exc()}") from None
    return printed.getvalue()


def _run_shell(block: Block, path: Path) -> str:
    beside = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    done = subprocess.run(
        ["sh", "-ec", block.code], capture_output=True, text=True, env={**os.environ, "PATH": beside}, check=False
    )
    if done.returncode:
        raise BlockError(f"{path}:{block.line}: this block ends with {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def differs(shown: str, printed: str) -> str | None:
    """Where a page shows other words or numbers than were printed; None where it does not."""
    expected, lines = shown.rstrip().splitlines(), printed.rstrip().splitlines()
    place = 0
    for number, line in enumerate(expected):
        if line.strip() == "...":
            rest = len(expected) - number - 1
            place = len(lines) - rest
            continue
        if not 0 <= place < len(lines):
            return f"the page shows {line!r}, and nothing of the kind was printed"
        if not _same_line(line, lines[place]):
            return f"the page shows {line!r}, printed was {lines[place]!r}"
        place += 1
    return None if place == len(lines) else f"printed and not shown: {lines[place]!r}"


def _same_line(shown: str, printed: str) -> bool:
    one, other = _plain(shown), _plain(printed)
    if NUMBER.sub("0", one).split() != NUMBER.sub("0", other).split():
        return False
    measured = zip(MEASURED.findall(one), MEASURED.findall(other), strict=True)
    if any(abs(_number(a) - _number(b)) > max(_number(e), _number(f)) for (a, e), (b, f) in measured):
        return False
    return all(map(_near, NUMBER.findall(MEASURED.sub("", one)), NUMBER.findall(MEASURED.sub("", other))))


def _plain(line: str) -> str:
    """Without what differs from run to run: times, and the shades of a curve that is drawn with characters."""
    return TIME.sub("some time", SHADES.sub(" ▇ ", line))


def _near(one: str, other: str) -> bool:
    a, b = _number(one), _number(other)
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b))


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def updated(text: str, results: list[tuple[Block, str]]) -> str:
    """The page with the outputs that were printed; those that stand for less than all lines stay as they are."""
    for block, printed in reversed(results):
        if block.shown is not None and "..." not in block.shown.code.split() and differs(block.shown.code, printed):
            begin, end = block.shown.span
            text = text[:begin] + "\n".join(line.rstrip() for line in printed.rstrip().splitlines()) + "\n" + text[end:]
    return text


def check_page(page: Path, write: bool = False) -> list[str]:
    """Run a page in an empty folder, offline and without the real data; say where it shows what is not printed."""
    os.environ.pop("EIGENCURVE_DATA", None)
    os.environ.update(HF_HUB_OFFLINE="1", MPLBACKEND="Agg", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        results = run_page(page)
    if write:
        page.write_text(updated(page.read_text(), results))
    pairs = [(block, printed) for block, printed in results if block.shown is not None]
    found = [(block, differs(block.shown.code, printed)) for block, printed in pairs]
    return [] if write else [f"{page}:{block.line}: {words}" for block, words in found if words]


def main() -> None:
    """Run pages, each in its own empty folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="bring the outputs on the page up to date")
    chosen = parser.parse_args()
    for page in chosen.pages:
        for message in check_page(page.resolve(), chosen.write):
            print(message)


if __name__ == "__main__":
    main()
