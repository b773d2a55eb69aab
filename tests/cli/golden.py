"""What the commands print, recorded in ``golden/*.txt``: command line, exit code, standard output, standard error.

``python -m tests.cli.golden [NAME]…`` records the files again; read the diff before you commit it. Numbers may
differ from the recorded ones by one unit in the last digit, or by a thousandth: other processors round differently, and
a tuned rate is only accurate to a ten-thousandth.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.planning.logged import write_logs
from tests.spectrum.test_measurement import record
from tests.spectrum.test_noise import noise
from tests.spectrum.test_start import START
from typer.testing import CliRunner

import eigencurve as ec
from eigencurve.cli import app

FOLDER = Path(__file__).parent / "golden"
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w])")
RELATIVE = 1e-3
SPECTRUM = "# dim 40\n-0.002 0.5\n0.001 20\n0.01 12\n0.2 6\n3.0 1.5\n"
POSITIVE = "0.001 20\n0.05 12\n0.7 6\n"
PROBLEM = """
import torch

def problem():
    x = torch.diag(torch.tensor([1.0, 2.0, 4.0, 8.0]))
    model = torch.nn.Linear(4, 1, bias=False)
    torch.nn.init.constant_(model.weight, 0.5)
    return model, torch.nn.MSELoss(), (x, torch.zeros(4, 1))

def broken():
    raise KeyError("labels")

def pair():
    return 1, 2

def endless():
    raise KeyboardInterrupt
"""
LAW = ("--power-law", "1.5", "--kappa", "1e4")


@dataclass(frozen=True)
class Case:
    """A command line, and its standard input."""

    words: tuple[str, ...]
    stdin: str = ""


def case(words: str, stdin: str = "") -> Case:
    """Split ``words`` at blanks; LAW is short for the options of a power law."""
    parts = [LAW if word == "LAW" else (word,) for word in words.split()]
    return Case(tuple(word for part in parts for word in part), stdin)


CASES = {
    "schedule_zoo": case("schedule resnet20_cifar10 --epochs 100 --steps-per-epoch 391 --lr 0.1"),
    "schedule_power_law": case("schedule LAW --steps 1000 --lr 0.5 --min-lr 0.001 --allocation optimal"),
    "schedule_limit": case("schedule small.txt --weight-decay 5e-4 --steps 500 --beta 1"),
    "schedule_stdin": case("schedule - --steps 100 --weight-decay 1e-3", SPECTRUM),
    "schedule_warmup": case("schedule LAW --steps 200 --warmup 50"),
    "schedule_half_an_epoch": case(
        "schedule --kind linear --epochs 0.5 --steps-per-epoch 30 --warmup 20% --csv --lr 0.1"
    ),
    "schedule_wrong_warmup": case("schedule --kind linear --steps 30 --warmup long --lr 0.1"),
    "schedule_wrong_length": case("schedule --kind wsd --steps 30 --decay-steps 120% --lr 0.1"),
    "schedule_long_decay": case("schedule --kind wsd --steps 1e2 --decay-steps 90% --warmup 20% --lr 0.1"),
    "schedule_tail": case(
        "schedule --kind wsd --steps 1e2 --decay-steps 40% --tail 1-sqrt --warmup 10% --warmup-shape cosine --lr 0.1"
    ),
    "schedule_wrong_tail": case("schedule --kind wsd --steps 1e2 --tail 1-sqr --lr 0.1"),
    "schedule_cycles": case("schedule --kind wsd-cycles --steps 12 --num-cycles 2 --decay 0.5 --csv --lr 0.1"),
    "schedule_one_cycle": case(
        "schedule --kind one-cycle --steps 10 --three-phase --pct-start 0.4 --code torch --lr 0.1"
    ),
    "schedule_cosine": case("schedule --kind cosine --steps 100 --lr 0.3"),
    "schedule_multistep": case("schedule --kind multistep --steps 90 --milestones 30,60 --factor 10 --lr 0.1"),
    "schedule_csv": case("schedule --kind step-decay --steps 8 --lr 0.8 --csv"),
    "schedule_json": case("schedule positive.txt --steps 100 --json"),
    "schedule_dash": case("schedule --kind linear --steps 10 -o - --lr 0.1"),
    "schedule_code": case("schedule small.txt --weight-decay 5e-4 --steps 100 --code torch"),
    "schedule_code_optax": case("schedule LAW --steps 100 --warmup 10 --momentum 0.9 --nesterov --code optax"),
    "schedule_files": case("schedule --kind wsd --decay-steps 20 --steps 100 -o w.json -o w.csv -o w.py --lr 0.1"),
    "schedule_load": case("schedule --load saved.json --code keras"),
    "schedule_no_spectrum": case("schedule --steps 100"),
    "schedule_no_steps": case("schedule LAW"),
    "schedule_both_lengths": case("schedule LAW --steps 5 --epochs 1"),
    "schedule_wrong_kind": case("schedule --kind cosin --steps 100 --lr 0.1"),
    "schedule_wrong_setting": case("schedule --kind cosine --alpha 2 --steps 100 --lr 0.1"),
    "schedule_missing_setting": case("schedule --kind exponential --steps 100 --lr 0.1"),
    "schedule_wrong_option": case("schedule --stepz 100"),
    "schedule_wrong_number": case("schedule LAW --steps many"),
    "schedule_bad_value": case("schedule LAW --steps 100 --lr -1"),
    "schedule_needs_decay": case("schedule small.txt --steps 100"),
    "schedule_missing_file": case("schedule none.npz --steps 100"),
    "schedule_no_such_name": case("schedule resnet21 --steps 100"),
    "schedule_half_a_law": case("schedule --power-law 1.5 --steps 100"),
    "schedule_law_and_file": case("schedule small.txt LAW --steps 100"),
    "schedule_existing_output": case("schedule --kind linear --steps 10 -o saved.json --lr 0.1"),
    "schedule_wrong_ending": case("schedule --kind linear --steps 10 -o curve.gif --lr 0.1"),
    "schedule_no_folder": case("schedule --kind linear --steps 10 -o none/curve.csv --lr 0.1"),
    "schedule_two_prints": case("schedule --kind linear --steps 10 --json --csv --lr 0.1"),
    "schedule_nesterov_without_momentum": case("schedule --kind linear --steps 10 --nesterov --lr 0.1"),
    "schedule_load_and_kind": case("schedule --load saved.json --steps 10"),
    "schedule_wrong_framework": case("schedule --kind linear --steps 10 --code caffe --lr 0.1"),
    "spectrum_show": case("spectrum show small.txt --weight-decay 5e-4"),
    "spectrum_show_law": case("spectrum show LAW"),
    "spectrum_show_json": case("spectrum show positive.txt --json"),
    "spectrum_show_measured": case("spectrum show noisy.npz"),
    "spectrum_show_measured_json": case("spectrum show noisy.npz --json"),
    "spectrum_show_damaged": case("spectrum show damaged.json"),
    "spectrum_show_empty_stdin": case("spectrum show - --weight-decay 1e-3"),
    "spectrum_compare": case("spectrum compare small.txt positive.txt --weight-decay 5e-4 --steps 1000"),
    "spectrum_compare_json": case("spectrum compare small.txt positive.txt --weight-decay 5e-4 --steps 100 --json"),
    "spectrum_compare_one": case("spectrum compare small.txt"),
    "spectrum_convert": case("spectrum convert positive.txt converted.npz"),
    "spectrum_convert_dash": case("spectrum convert - -", POSITIVE),
    "spectrum_convert_existing": case("spectrum convert positive.txt small.txt"),
    "spectrum_plot_ending": case("spectrum plot positive.txt -o figure.gif"),
    "spectrum_plot": case("spectrum plot positive.txt -o figure.png"),
    "zoo": case("zoo"),
    "zoo_list": case("zoo list"),
    "zoo_show": case("zoo show resnet20_cifar10"),
    "zoo_export": case("zoo export resnet20_cifar10 zoo.npz"),
    "zoo_show_no_such_name": case("zoo show resnet21"),
    "zoo_export_existing": case("zoo export resnet20_cifar10 small.txt"),
    "compare_no_spectrum": case("compare --steps 10"),
    "compare": case("compare LAW --steps 300 --noise 100"),
    "compare_measured": case("compare noisy.npz --steps 300 --batch-size 16"),
    "compare_measured_json": case("compare noisy.npz --steps 30 --json"),
    "compare_not_measured": case("compare LAW --steps 300 --batch-size 16"),
    "compare_fixed_rate": case("compare LAW --steps 300 --lr 0.1 --load saved300.json"),
    "compare_momentum": case("compare LAW --steps 100 --momentum 0.9 --lr 0.1 --json"),
    "compare_diverges": case("compare LAW --steps 3000 --lr 1"),
    "compare_best_with_momentum": case("compare LAW --steps 100 --noise 100 --momentum 0.9 --best"),
    "compare_nesterov": case("compare LAW --steps 100 --noise 100 --momentum 0.9 --nesterov"),
    "compare_nesterov_without_momentum": case("compare LAW --steps 100 --nesterov"),
    "compare_other_length": case("compare LAW --steps 100 --load saved.json"),
    "optimal": case("optimal LAW --steps 60 --noise 100"),
    "optimal_measured": case("optimal noisy.npz --steps 60 --json"),
    "optimal_files": case("optimal positive.txt --steps 40 -o best.json -o best.csv"),
    "optimal_momentum": case("optimal LAW --steps 60 --noise 100 --momentum 0.9"),
    "optimal_nesterov_json": case("optimal LAW --steps 6 --noise 100 --momentum 0.9 --nesterov --json"),
    "optimal_bad_noise": case("optimal LAW --steps 60 --noise -1"),
    "fit": case("fit constant.csv cosine.csv"),
    "fit_best": case("fit constant.csv cosine.csv --steps 3000 --best -o best.json"),
    "fit_one_run": case("fit constant.csv --max-lr 0.02"),
    "fit_late": case("fit constant.csv late.csv"),
    "fit_late_warmup": case("fit constant.csv late.csv --warmup 100 --loss VAL_LOSS"),
    "fit_no_logs": case("fit"),
    "fit_missing_file": case("fit constant.csv none.csv"),
    "fit_no_log": case("fit small.txt"),
    "fit_wrong_loss": case("fit constant.csv --loss train_loss -o best.json"),
    "fit_wrong_run": case("fit constant.csv --run first"),
    "fit_wrong_steps": case("fit constant.csv --steps 1"),
    "fit_high_rate": case("fit constant.csv --max-lr 5"),
    "fit_existing": case("fit constant.csv -o saved.json"),
    "fit_report_ending": case("fit constant.csv --report page.pdf"),
    "schedule_above_the_limit": case("schedule noisy.npz --steps 100 --lr 5 --csv"),
    "schedule_half_the_limit": case("schedule positive.txt --steps 100 --momentum 0.9 --csv"),
    "schedule_no_rate": case("schedule --kind cosine --steps 100"),
    "schedule_too_short": case("schedule --power-law 1.5 --kappa 1e6 --steps 50 --lr 1e-3"),
    "schedule_load_momentum": case("schedule --load saved.json --momentum 0.9 --code torch"),
    "schedule_adam": case("schedule adam.npz --steps 100 --code torch"),
    "compare_adam": case("compare adam.npz --steps 100"),
    "plan": case("plan --steps 50000 --optimizer adamw"),
    "plan_spectrum": case("plan noisy.npz --steps 300"),
    "plan_high_rate": case("plan positive.txt --steps 100 --lr 50"),
    "plan_adam": case("plan adam.npz --steps 100"),
    "plan_logs": case("plan constant.csv cosine.csv --steps 3000"),
    "plan_model": case("plan measured:problem --steps 100 --batch-size 2"),
    "plan_json": case("plan --steps 40 --json"),
    "plan_code": case("plan positive.txt --steps 100 --code torch"),
    "plan_files": case("plan positive.txt --steps 100 -o planned.json -o planned.csv"),
    "plan_path": case("plan measured.py:problem --steps 100"),
    "plan_no_batch_size": case("plan measured:problem --steps 100"),
    "plan_model_and_log": case("plan measured:problem constant.csv --steps 100"),
    "plan_model_adam": case("plan measured:problem --steps 100 --optimizer adamw"),
    "plan_wrong_metric": case("plan adam.npz --steps 100 --optimizer sgd"),
    "plan_no_such_name": case("plan resnet20_cifar --steps 100"),
    "estimate_unsettled": case("estimate measured:problem --num-steps 3 --checkpoint run.npz --steps 100 --lr 0.1"),
    "estimate_path": case("estimate measured.py:problem"),
    "estimate": case("estimate measured:problem -o measured.npz"),
    "estimate_rate": case("estimate measured:problem --steps 100 --lr 0.01"),
    "estimate_no_state": case("estimate measured:problem --optimizer-state none.pt"),
    "estimate_wrong_state": case("estimate measured:problem --optimizer-state small.txt"),
    "estimate_json": case("estimate measured:problem -o measured.json --gauss-newton --json"),
    "estimate_broken": case("estimate measured:broken"),
    "estimate_pair": case("estimate measured:pair"),
    "estimate_no_function": case("estimate measured:nothing"),
    "estimate_no_module": case("estimate no_such_module:problem"),
    "estimate_no_colon": case("estimate measured"),
    "estimate_wrong_size": case("estimate measured:problem --memory-budget 2XB"),
    "estimate_little_memory": case("estimate measured:problem --memory-budget 20B"),
    "estimate_existing": case("estimate measured:problem -o small.txt"),
    "estimate_interrupted": case("estimate measured:endless"),
    "report": case("report LAW --steps 50 --no-best"),
    "report_nothing": case("report"),
    "report_no_store": case("report --store none.sqlite"),
    "report_wrong_ending": case("report LAW --steps 50 --no-best -o report.pdf"),
    "demo_wrong_ending": case("demo -o demo.pdf"),
    "studio_wrong_port": case("studio --port 0"),
    "version": case("--version"),
    "no_such_command": case("shcedule"),
    "no_such_option": case("--nonsense"),
}


def prepare(folder: Path) -> None:
    """Write the files that the cases read."""
    (folder / "small.txt").write_text(SPECTRUM)
    (folder / "positive.txt").write_text(POSITIVE)
    (folder / "damaged.json").write_text("{]")
    (folder / "measured.py").write_text(PROBLEM)
    head, *rows = write_logs(folder)[1].read_text().splitlines()
    (folder / "late.csv").write_text("\n".join([head, *rows[10:]]) + "\n")
    spectrum = ec.Spectrum([-0.1, 0.2, 3.0], [1, 6, 3], dim=10)
    ec.save_spectrum(spectrum, folder / "noisy.npz", record(error_between_probes=0.013), noise(), START)
    adam = record(preconditioner="AdamW", reason="num_steps", schedule_change=0.41)
    ec.save_spectrum(spectrum, folder / "adam.npz", adam, noise(), START)
    for name, steps in (("saved.json", 10), ("saved300.json", 300)):
        text = f'{{"kind": "cosine", "version": 1, "total_steps": {steps}, "lr": 0.1, "min_lr": 0.0}}\n'
        (folder / name).write_text(text)


def output_of(chosen: Case) -> str:
    """Run a case in the current folder and return what it prints."""
    sys.argv = ["eigencurve", *chosen.words]
    environment = {"NO_COLOR": "1", "COLUMNS": "100", "TERM": "dumb"}
    result = CliRunner(env=environment).invoke(app, list(chosen.words), input=chosen.stdin)
    sys.modules.pop("measured", None)
    parts = [f"$ eigencurve {' '.join(chosen.words)}", f"exit {result.exit_code}", result.stdout.rstrip()]
    return "\n".join([*parts, "--- standard error", result.stderr.rstrip(), ""])


def without_times(text: str) -> str:
    """Replace times, which differ between runs, with a placeholder."""
    return re.sub(r"in \d+\.\d s\b|\"seconds\": [\d.e-]+", "TIME", text)


def difference(expected: str, got: str) -> str:
    """Describe the first difference of two outputs beyond rounding; empty if there is none."""
    first, second = (NUMBER.sub("#", " ".join(without_times(text).split())) for text in (expected, got))
    if first != second:
        place = next(i for i, pair in enumerate(zip(first + "\0", second + "\1", strict=False)) if len(set(pair)) > 1)
        return f"expected {first[max(0, place - 40) : place + 40]!r}, got {second[max(0, place - 40) : place + 40]!r}"
    pairs = zip(*(NUMBER.findall(without_times(text)) for text in (expected, got)), strict=True)
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


def remake(names: Sequence[str]) -> None:
    """Record the files of some cases again, or of all."""
    FOLDER.mkdir(exist_ok=True)
    for old in FOLDER.glob("*.txt"):
        if old.stem not in CASES or not names:
            old.unlink()
    for name, chosen in CASES.items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            os.chdir(folder)
            prepare(Path(folder))
            (FOLDER / f"{name}.txt").write_text(without_times(output_of(chosen)))
            os.chdir("/")


if __name__ == "__main__":
    remake(sys.argv[1:])
