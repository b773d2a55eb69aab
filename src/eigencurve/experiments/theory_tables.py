"""``python -m eigencurve.experiments.theory_tables rates`` (or another table) writes into results/theory."""

from __future__ import annotations

import argparse
import io
import os
import platform
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from matplotlib.figure import Figure

from eigencurve._files import write_atomically
from eigencurve.experiments import theory_best, theory_extra, theory_rates, theory_tightness

PACKAGES = ("eigencurve", "numpy", "scipy", "numba")
TITLES = {
    "rates": "The rates of the paper's schedules, measured",
    "best": "The best schedule and the classic ones on a published spectrum",
    "extra-terms": "The extra terms, exact losses and certificates",
    "tightness": "How tight the paper's bounds are",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Make one table and its figure."""
    parser = argparse.ArgumentParser(prog="python -m eigencurve.experiments.theory_tables", description=__doc__)
    parser.add_argument("table", choices=TITLES)
    parser.add_argument("--out", type=Path, default=Path("results/theory"), help="the folder to write to")
    parser.add_argument("--data", type=Path, default=None, help="has spectra/*.txt (default: EIGENCURVE_DATA)")
    chosen = parser.parse_args(arguments)
    start = time.monotonic()
    if chosen.table == "rates":
        sweeps = theory_rates.measure()
        body, page = theory_rates.text(sweeps), theory_rates.figure(sweeps)
    elif chosen.table == "tightness":
        ratios = theory_tightness.measure()
        body, page = theory_tightness.text(ratios), theory_tightness.figure(ratios)
    elif chosen.table == "best":
        cases = theory_best.measure(_data_folder(parser, chosen.data))
        body, page = theory_best.text(cases), theory_best.figure(cases)
    else:
        blocks = theory_extra.measure(_data_folder(parser, chosen.data))
        body, page = theory_extra.text(blocks), theory_extra.figure(blocks)
    print(write(chosen.table, body, page, chosen.out, time.monotonic() - start))
    return 0


def write(name: str, body: str, page: Figure, folder: Path, seconds: float) -> Path:
    """Put the table and its figure into ``folder``, with the command and versions that made them."""
    folder.mkdir(parents=True, exist_ok=True)
    picture = io.BytesIO()
    page.savefig(picture, format="png", dpi=110)
    write_atomically(folder / f"{name}.png", picture.getvalue())
    target = folder / f"{name}.md"
    text = f"# {TITLES[name]}\n\n{_origin(name, seconds)}\n\n![{name}]({name}.png)\n\n{body}\n"
    write_atomically(target, text.encode())
    return target


def _origin(name: str, seconds: float) -> str:
    versions = ", ".join(f"{package} {version(package)}" for package in PACKAGES)
    return (
        f"Made by `python -m eigencurve.experiments.theory_tables {name}` on {datetime.now(UTC):%Y-%m-%d} in "
        f"{seconds:.0f} s, with Python {platform.python_version()}, {versions}."
    )


def _data_folder(parser: argparse.ArgumentParser, given: Path | None) -> Path:
    named = given or (Path(os.environ["EIGENCURVE_DATA"]) if os.environ.get("EIGENCURVE_DATA") else None)
    if named is None or not (named / "spectra").is_dir():
        parser.error("this table needs the published spectra: set EIGENCURVE_DATA or --data to the folder above them")
    return named


if __name__ == "__main__":
    sys.exit(main())
