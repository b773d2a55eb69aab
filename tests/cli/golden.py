"""JSON, CSV and code that the commands print, recorded in ``golden/``. Sentences are not recorded.

``python -m tests.cli.golden [NAME]…`` records the files again; read the diff before you commit it. Numbers may differ
from the recorded ones by one unit in the last digit, or by a thousandth: other processors round differently, and a
tuned rate is only accurate to a ten-thousandth.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.cli.folder import POSITIVE, SPECTRUM, prepare
from typer.testing import CliRunner

from eigencurve.cli import app

FOLDER = Path(__file__).parent / "golden"
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
RELATIVE = 1e-3
LAW = "--power-law 1.5 --kappa 1e4"
# Numbers that differ between runs.
TIMES = ("seconds",)
# Command lines by the file that holds what they print; the ending says how it is compared.
CASES = {
    "schedule.json": "schedule positive.txt --steps 100 --json",
    "schedule_zoo.json": "schedule resnet20_cifar10 --epochs 100 --steps-per-epoch 391 --lr 0.1 --json",
    "schedule_law.json": f"schedule {LAW} --steps 1000 --lr 0.5 --min-lr 0.001 --set allocation=optimal --json",
    "schedule_stdin.json": "schedule - --steps 100 --weight-decay 1e-3 --json",
    "schedule_warmup.json": f"schedule {LAW} --steps 200 --warmup 50 --json",
    "schedule_dash.json": "schedule --kind linear --steps 10 -o - --lr 0.1",
    "schedule_tail.json": "schedule --kind wsd --steps 1e2 --set decay-steps=40% --set tail=1-sqrt --warmup 10% "
    "--warmup-shape cosine --lr 0.1 --json",
    "schedule_multistep.json": "schedule --kind multistep --steps 90 --set milestones=30,60 --lr 0.1 --json",
    "schedule_limit.csv": "schedule small.txt --weight-decay 5e-4 --steps 500 --set beta=1 --csv",
    "schedule_half_an_epoch.csv": "schedule --kind linear --epochs 0.5 --steps-per-epoch 30 --warmup 20% --lr 1 --csv",
    "schedule_cycles.csv": "schedule --kind wsd-cycles --steps 12 --set num_cycles=2 --set decay=0.5 --csv --lr 0.1",
    "schedule_step_decay.csv": "schedule --kind step-decay --steps 8 --lr 0.8 --csv",
    "schedule_half_the_limit.csv": "schedule positive.txt --steps 100 --momentum 0.9 --csv",
    "schedule_above_the_limit.csv": "schedule noisy.npz --steps 100 --lr 5 --csv",
    "schedule_one_cycle.txt": "schedule --kind one-cycle --steps 10 --set three_phase=true --set pct_start=0.4 "
    "--code torch --lr 0.1",
    "schedule_torch.txt": "schedule small.txt --weight-decay 5e-4 --steps 100 --code torch",
    "schedule_optax.txt": f"schedule {LAW} --steps 100 --warmup 10 --momentum 0.9 --nesterov --code optax",
    "schedule_keras.txt": "schedule --load saved.json --code keras",
    "schedule_momentum.txt": "schedule --load saved.json --momentum 0.9 --code torch",
    "schedule_adam.txt": "schedule adam.npz --steps 100 --code torch",
    "spectrum_show.json": "spectrum show positive.txt --json",
    "spectrum_show_measured.json": "spectrum show noisy.npz --json",
    "spectrum_compare.json": "spectrum compare small.txt positive.txt --weight-decay 5e-4 --steps 100 --json",
    "spectrum_convert.json": "spectrum convert - -",
    "zoo_show.json": "zoo show resnet20_cifar10 --json",
    "compare.json": f"compare {LAW} --steps 300 --noise 100 --json",
    "compare_measured.json": "compare noisy.npz --steps 30 --json",
    "compare_batch.json": "compare noisy.npz --steps 300 --batch-size 16 --json",
    "compare_fixed_rate.json": f"compare {LAW} --steps 100 --momentum 0.9 --lr 0.1 --json",
    "compare_nesterov.json": f"compare {LAW} --steps 100 --noise 100 --momentum 0.9 --nesterov --json",
    "compare_best.json": f"compare {LAW} --steps 100 --noise 100 --momentum 0.9 --best --json",
    "optimal.json": f"optimal {LAW} --steps 60 --noise 100 --json",
    "optimal_measured.json": "optimal noisy.npz --steps 60 --json",
    "optimal_nesterov.json": f"optimal {LAW} --steps 6 --noise 100 --momentum 0.9 --nesterov --json",
    "fit.json": "fit constant.csv cosine.csv --json",
    "fit_one_run.json": "fit constant.csv --max-lr 0.02 --json",
    "plan_nothing.json": "plan --steps 40 --json",
    "plan_spectrum.json": "plan noisy.npz --steps 60 --json",
    "plan_adam.json": "plan adam.npz --steps 100 --json",
    "plan_logs.json": "plan constant.csv cosine.csv --steps 3000 --json",
    "plan_torch.txt": "plan positive.txt --steps 100 --code torch",
    "estimate.json": "estimate measured:problem -o measured.json --gauss-newton --json",
}
STDIN = {"schedule_stdin.json": SPECTRUM, "spectrum_convert.json": POSITIVE}


def output_of(name: str) -> str:
    """Run a case in the current folder and return what it prints, without sentences and times."""
    sys.argv = ["eigencurve", *CASES[name].split()]
    result = CliRunner(env={"NO_COLOR": "1"}).invoke(app, CASES[name].split(), input=STDIN.get(name))
    sys.modules.pop("measured", None)
    assert result.exit_code == 0, result.stderr
    if not name.endswith(".json"):
        return result.stdout
    return json.dumps(_without_sentences(json.loads(result.stdout)), indent=1, ensure_ascii=False) + "\n"


def _without_sentences(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _without_sentences(part) for name, part in value.items() if name not in TIMES}
    if isinstance(value, list):
        return [_without_sentences(part) for part in value]
    return "…" if isinstance(value, str) and value.count(" ") > 3 else value


def difference(expected: str, got: str) -> str:
    """Describe the first difference of two outputs beyond rounding; empty if there is none."""
    first, second = (NUMBER.sub("#", text) for text in (expected, got))
    if first != second:
        place = next(i for i, pair in enumerate(zip(first + "\0", second + "\1", strict=False)) if len(set(pair)) > 1)
        return f"expected {first[max(0, place - 40) : place + 40]!r}, got {second[max(0, place - 40) : place + 40]!r}"
    pairs = zip(NUMBER.findall(expected), NUMBER.findall(got), strict=True)
    return next((f"expected {a}, got {b}" for a, b in pairs if not close(a, b)), "")


def close(first: str, second: str) -> bool:
    """Whether two printed numbers differ by at most one unit in the last digit, or by a thousandth."""
    a, b = (float(text.replace(",", "")) for text in (first, second))
    if unit(first) == unit(second) == 0:
        return a == b
    return abs(a - b) <= 1.001 * max(unit(first), unit(second)) or abs(a - b) <= RELATIVE * max(abs(a), abs(b))


def unit(text: str) -> float:
    """The value of one unit in the last digit of a printed number; 0 for whole numbers, which are exact."""
    digits, _, exponent = text.replace(",", "").partition("e")
    decimals = len(digits.partition(".")[2])
    return 0.0 if decimals == 0 and not exponent else 10.0 ** (int(exponent or 0) - decimals)


def remake(names: list[str]) -> None:
    """Record the files of some cases again, or of all."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.iterdir():
        if old.name not in CASES:
            old.unlink()
    for name in names or CASES:
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            prepare(Path(folder))
            (FOLDER / name).write_text(output_of(name))
            os.chdir("/")


if __name__ == "__main__":
    sys.path.insert(0, "")
    remake(sys.argv[1:])
