"""Run the benchmarks one after another and write a results page: ``make bench`` and ``make bench-peers``.

Each benchmark is a process of its own, so that none warms up another. Its whole output is on the page, below the first
paragraph of its description.
"""

import argparse
import ast
import os
import platform
import re
import subprocess
import sys
from pathlib import Path

from paper.page import ResultsPage, made_by_line

FOLDER = Path(__file__).parent
# The order of the page: what a user waits for first.
NAMES = (
    "products", "precision", "noise", "counting", "sharpening", "networks", "scheduler", "core", "theory", "growth",
    "forecast", "ridge", "reading", "studio",
)  # fmt: skip
# These need other packages, so they have an environment and a page of their own.
PEERS = ("peers", "waiting")


def processor():
    """Name of the processor, as Linux knows it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown processor")


def description(name):
    """Title and first paragraph of a benchmark's docstring, as Markdown."""
    text = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text()))
    title, first, *_ = [" ".join(part.split()) for part in text.split("\n\n")]
    return title.split(": ``python")[0], as_markdown(first)


def as_markdown(text):
    """Text of a docstring with names and code marked as in Markdown."""
    return re.sub(r":\w+:`~?(?:\w+\.)*(\w+)`", r"`\1`", text).replace("``", "`")


def output_of(name):
    """What the benchmark prints; also printed here, line by line."""
    print(f"--- {name}", flush=True)
    lines = []
    with subprocess.Popen([sys.executable, "-m", f"benchmarks.{name}"], stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
    if process.returncode:
        sys.exit(f"benchmarks.{name} ended with exit code {process.returncode}.")
    return "\n".join(lines)


def section(name):
    title, text = description(name)
    return f"## {title}\n\n`python -m benchmarks.{name}`. {text}\n\n```text\n{output_of(name)}\n```"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--peers", action="store_true", help="compare with other packages and write peers.md")
    parser.add_argument("--output", type=Path, default=FOLDER.parent / "results", help="folder for the page")
    options = parser.parse_args()
    intro = (
        f"Measured on {processor()} with {os.cpu_count()} cores, {platform.system()}, OMP_NUM_THREADS="
        f"{os.environ.get('OMP_NUM_THREADS', 'not set')}. Times are from one machine; the ratios in each section are "
        f"from one run on the same work. {'' if options.peers else 'Other packages are in [peers](peers.md).'}".strip()
    )
    body = "\n\n".join([intro, *(section(name) for name in (PEERS if options.peers else NAMES))])
    stem, title = ("peers", "Comparison with other packages") if options.peers else ("benchmarks", "Benchmarks")
    made_by = made_by_line(f"make {'bench-peers' if options.peers else 'bench'}")
    print(f"wrote {ResultsPage(stem, title, body).write(options.output, made_by)[0]}")


if __name__ == "__main__":
    main()
