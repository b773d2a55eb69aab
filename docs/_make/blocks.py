"""Run the code blocks of a documentation page and compare their output with the page.

``python docs/_make/blocks.py docs/start.md`` runs a page and reports each block whose output differs from what the page
shows. ``--write`` updates the page instead. The info string of a fence decides what happens to its block:

- ``python``: executed. All blocks of a page share one namespace and run in order, in an empty folder.
- An HTML comment that starts with ``<!-- setup``: executed like ``python``, but hidden from the reader. It defines the
  names that a code fragment assumes.
- ``python title="train.py"``: written to that file.
- ``sh``: executed by a shell in the same folder.
- ``text`` directly after one of these: the expected output. Numbers may differ by 5%, measured values by their error
  bars, times by any amount, and a line ``...`` matches any number of lines.
- Any language with ``title="not run: <reason>"``: not executed; the reader sees the reason.
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
        language: Language of the fence, such as ``python``, ``sh`` or ``text``; may be empty.
        title: Title of the fence; may be empty.
        code: The code, with line breaks.
        line: Line number on the page at which the code begins.
        span: Start and end offset of the code in the text of the page.
        shown: The block with the expected output, or None if the page shows none.
    """

    language: str
    title: str
    code: str
    line: int
    span: tuple[int, int]
    shown: Block | None = None

    @property
    def reason(self) -> str | None:
        """The reason why the block is not run, or None if its title gives none."""
        return self.title.removeprefix(NOT_RUN) if self.title.startswith(NOT_RUN) else None

    @property
    def is_file(self) -> bool:
        """Whether the block is the content of a file."""
        return bool(self.title) and self.reason is None

    @property
    def is_run(self) -> bool:
        """Whether the block is executed, so that it can have an output."""
        return self.language in {"python", "sh"} and not self.title


class BlockError(Exception):
    """A code block failed; the message names the page and the line."""


def blocks_of(text: str) -> list[Block]:
    """The code blocks of a page in order, each with its expected output."""
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
    """Run the blocks of a page in the current folder; return each with its output.

    Raises:
        BlockError: If a block fails.
    """
    namespace: dict[str, Any] = {"__name__": "__main__"}
    sys.path[0] = ""  # import the files that the page writes, not those next to this script
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
    """Describe the first difference between the expected and the actual output; None if they match."""
    expected, lines = shown.rstrip().splitlines(), printed.rstrip().splitlines()
    place = 0
    for number, line in enumerate(expected):
        if line.strip() == "...":
            rest = len(expected) - number - 1
            place = len(lines) - rest
            continue
        if not 0 <= place < len(lines):
            return f"the page shows {line!r}, but the output ends before it"
        if not _same_line(line, lines[place]):
            return f"the page shows {line!r}, but the output is {lines[place]!r}"
        place += 1
    return None if place == len(lines) else f"the output continues with {lines[place]!r}, which the page does not show"


def _same_line(shown: str, printed: str) -> bool:
    one, other = _plain(shown), _plain(printed)
    if NUMBER.sub("0", one).split() != NUMBER.sub("0", other).split():
        return False
    measured = zip(MEASURED.findall(one), MEASURED.findall(other), strict=True)
    if any(abs(_number(a) - _number(b)) > max(_number(e), _number(f)) for (a, e), (b, f) in measured):
        return False
    return all(map(_near, NUMBER.findall(MEASURED.sub("", one)), NUMBER.findall(MEASURED.sub("", other))))


def _plain(line: str) -> str:
    """Remove what differs from run to run: times, and the characters of a text plot."""
    return TIME.sub("some time", SHADES.sub(" ▇ ", line))


def _near(one: str, other: str) -> bool:
    a, b = _number(one), _number(other)
    return abs(a - b) <= TOLERANCE * max(abs(a), abs(b))


def _number(text: str) -> float:
    return float(text.replace(",", ""))


def updated(text: str, results: list[tuple[Block, str]]) -> str:
    """The page with its outputs updated. Outputs that contain ``...`` stay unchanged."""
    for block, printed in reversed(results):
        if block.shown is not None and "..." not in block.shown.code.split() and differs(block.shown.code, printed):
            begin, end = block.shown.span
            text = text[:begin] + "\n".join(line.rstrip() for line in printed.rstrip().splitlines()) + "\n" + text[end:]
    return text


def check_page(page: Path, write: bool = False) -> list[str]:
    """Run a page in an empty folder, offline and without data sets; return a message for each difference."""
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
    """Run the pages given on the command line, each in its own empty folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--write", action="store_true", help="update the outputs on the page")
    chosen = parser.parse_args()
    for page in chosen.pages:
        for message in check_page(page.resolve(), chosen.write):
            print(message)


if __name__ == "__main__":
    main()
