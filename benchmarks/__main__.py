"""Run the benchmarks one after another and write results/benchmarks.md: ``make bench``.

Each benchmark is a process of its own, so that none warms up another. Its whole output is on the page, below the first
paragraph of its description.
"""

import argparse
import ast
import os
import platform
import subprocess
import sys
from pathlib import Path

from eigencurve.experiments.page import ResultsPage, made_by_line

FOLDER = Path(__file__).parent
# The order of the page: what a user waits for first.
NAMES = (
    "products", "noise", "counting", "sharpening", "scheduler", "core", "theory", "growth", "forecast", "ridge",
    "reading", "studio",
)  # fmt: skip


def processor():
    """Name of the processor, as Linux knows it."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown processor")


def description(name):
    """Title and first paragraph of a benchmark's docstring."""
    text = ast.get_docstring(ast.parse((FOLDER / f"{name}.py").read_text()))
    title, first, *_ = [" ".join(part.split()) for part in text.split("\n\n")]
    return title.split(": ``python")[0], first


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
    parser.add_argument("names", nargs="*", default=list(NAMES), help=f"benchmarks to run: {', '.join(NAMES)}")
    parser.add_argument("--output", type=Path, default=FOLDER.parent / "results", help="folder for benchmarks.md")
    options = parser.parse_args()
    intro = (
        f"Measured on {processor()} with {os.cpu_count()} cores, {platform.system()}, OMP_NUM_THREADS="
        f"{os.environ.get('OMP_NUM_THREADS', 'not set')}. Times are from one machine; the ratios in each section are "
        "from one run on the same work. The comparison with other packages is in [peers](peers.md)."
    )
    body = "\n\n".join([intro, *(section(name) for name in options.names)])
    page = ResultsPage("benchmarks", "Benchmarks", body)
    print(f"wrote {page.write(options.output, made_by_line('make bench'))[0]}")


if __name__ == "__main__":
    main()
