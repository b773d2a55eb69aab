"""``python -m eigencurve.experiments.theory.tables rates`` (or another table) writes into results/theory."""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from matplotlib.figure import Figure

from eigencurve import _check
from eigencurve._files import write_atomically
from eigencurve.experiments.data.folder import data_folder
from eigencurve.experiments.theory import best, cosine, extra_terms, rates, tightness
from eigencurve.runs.origin import origin_here

TITLES = {
    "rates": "The rates of the paper's schedules, measured",
    "best": "The best schedule and the classic ones on a published spectrum",
    "cosine": "Eigencurve beside cosine decay",
    "extra-terms": "The extra terms, exact losses and certificates",
    "tightness": "How tight the paper's bounds are",
}
NEED_SPECTRA = ("best", "cosine", "extra-terms")


def main(arguments: Sequence[str] | None = None) -> int:
    """Make one table and its figure."""
    parser = argparse.ArgumentParser(prog="python -m eigencurve.experiments.theory.tables", description=__doc__)
    parser.add_argument("table", choices=TITLES)
    parser.add_argument("--out", type=Path, default=Path("results/theory"), help="the folder to write to")
    parser.add_argument("--data", type=Path, default=None, help="has spectra/*.txt (default: EIGENCURVE_DATA)")
    chosen = parser.parse_args(arguments)
    start = time.monotonic()
    folder = chosen.data or data_folder()
    if chosen.table in NEED_SPECTRA and not (folder and (folder / "spectra").is_dir()):
        parser.error("this table needs the published spectra: set EIGENCURVE_DATA or --data to the folder above them")
    body, page = make(chosen.table, folder)
    print(write(chosen.table, body, page, chosen.out, time.monotonic() - start))
    return 0


def make(name: str, folder: Path | None) -> tuple[str, Figure]:
    """The text and the figure of one table; those of NEED_SPECTRA read ``folder``/spectra."""
    if name == "rates":
        sweeps = rates.measure()
        return rates.text(sweeps), rates.figure(sweeps)
    if name == "tightness":
        ratios = tightness.measure()
        return tightness.text(ratios), tightness.figure(ratios)
    if folder is None:
        _check.refuse(name, "data", "a folder that holds spectra/", None, "Set EIGENCURVE_DATA.")
    if name == "best":
        cases = best.measure(folder)
        return best.text(cases), best.figure(cases)
    if name == "cosine":
        found = cosine.measure(folder)
        return cosine.text(found), cosine.figure(found)
    blocks = extra_terms.measure(folder)
    return extra_terms.text(blocks), extra_terms.figure(blocks)


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
    versions = ", ".join(f"{package} {number}" for package, number in origin_here().versions.items())
    return (
        f"Made by `python -m eigencurve.experiments.theory.tables {name}` on {datetime.now(UTC):%Y-%m-%d} in "
        f"{seconds:.0f} s, with {versions}."
    )


if __name__ == "__main__":
    sys.exit(main())
