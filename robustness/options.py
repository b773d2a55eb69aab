"""Every option of every command against every kind of source: applied, refused by name, or ignored, which is a fault.

The options come from the commands themselves, so a new one is attacked without a change here. It needs a value below
only if 3 says nothing.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import torch
from robustness.counts import Counts
from typer.testing import CliRunner

import eigencurve as ec
from eigencurve.cli import app
from eigencurve.cli.shell import COMMANDS, load
from eigencurve.runs.origin import origin_here
from eigencurve.runs.store import Outcome, Run, Store
from eigencurve.schedules.kinds import FACTORIES

# Commands that are quick enough for a short attack.
QUICK = ("schedule", "spectrum", "zoo")
# A server, which no output tells apart, and a training of half a minute.
NOT_RUN = ("studio", "demo")
TIMES = re.compile(rb'in \d+\.\d s\b|"seconds": [\d.e-]+|\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d)?')
PROBLEM = """
import torch

def problem():
    torch.manual_seed(0)
    x = torch.randn(12, 3)
    layers = torch.nn.Linear(3, 12), torch.nn.BatchNorm1d(12), torch.nn.Tanh(), torch.nn.Linear(12, 1)
    model = torch.nn.Sequential(*layers)
    return model, torch.nn.MSELoss(), (x, x.sum(1, keepdim=True))
"""
# Values of options by their parameter, where 3 would say nothing.
VALUES: dict[str, str] = {
    "steps": "77", "epochs": "3", "steps_per_epoch": "9", "lr": "0.0123", "min_lr": "1e-05", "max_lr": "0.0321",
    "warmup": "6", "warmup_shape": "cosine", "momentum": "0.37", "weight_decay": "0.0123", "optimizer": "adamw",
    "noise": "123", "initial_error": "0.21", "batch_size": "16", "beta": "1.5", "allocation": "optimal",
    "power_law": "1.7", "kappa": "1234", "load": "other.json", "code": "keras", "last_step": "1000",
    "store": "other.sqlite", "settle": "0.9", "num_products": "4", "memory_budget": "20B", "mode": "train",
    "parameters": "0.*", "microbatch": "5", "start_state": "start.pt", "scale": "smoke", "backend": "sequential",
    "title": "Title", "data": ".", "runs": "runs.jsonl", "report": "page.html", "address": "auto",
    "spectrum_file": "other_spectrum.json", "optimizer_state": "adam.pt",
}  # fmt: skip
# Values of the settings of the kinds of schedules.
SETTINGS = (
    "beta=1.5", "allocation=optimal", "rounding=released", "alpha=0.7", "power=2", "timescale=7", "pct_start=0.4",
    "div_factor=10", "final_div_factor=100", "anneal=linear", "three_phase=true", "r=0.6", "factor=3",
    "num_intervals=3", "milestones=10,20", "hold=9", "every=4", "decay_steps=11", "decay=0.3", "tail=1-sqrt",
    "num_cycles=2", "ends=20,60",
)  # fmt: skip
# Files to write, by command and parameter.
OUTPUTS = {
    "report": "page.html", "estimate": "out.json", "spectrum plot": "out.svg", "plan": "out.json",
    "schedule": "out.json", "optimal": "out.json", "fit": "out.json",
}  # fmt: skip
# What an option needs besides, by command and parameter, or by parameter.
NEEDS: dict[str, tuple[str, ...]] = {
    "nesterov": ("--momentum", "0.9"), "warmup_shape": ("--warmup", "5"),
    "estimate noise": ("--batch-size", "4"), "estimate batch_size": ("--noise",),
    "schedule optimizer": ("--code", "torch"), "schedule momentum": ("--code", "torch"),
    "schedule weight_decay": ("--code", "torch"), "schedule nesterov": ("--code", "torch", "--momentum", "0.9"),
}  # fmt: skip
# An option that permits something: the words without which the command refuses it.
PERMITS: dict[str, tuple[str, ...]] = {
    "report force": ("-o", "existing.html"), "estimate force": ("-o", "existing.json"),
    "spectrum plot force": ("-o", "existing.svg"), "plan force": ("-o", "existing.json"),
    "schedule force": ("-o", "existing.json"), "optimal force": ("-o", "existing.json"),
    "fit force": ("-o", "existing.json"), "fit resumed": ("resumed.csv",),
}  # fmt: skip
# The same, in place of the source.
PERMITS_ALONE: dict[str, tuple[str, ...]] = {
    "spectrum convert force": ("noisy.npz", "existing.json"), "zoo export force": ("resnet20_cifar10", "existing.json"),
}  # fmt: skip
LAW = ("--power-law", "1.5", "--kappa", "1e3")
SHORT = ("--steps", "60")
REQUIRED = {
    "exponential": ("--min-lr", "0.01"), "inverse_time": ("--min-lr", "0.01"), "multistep": ("--set", "milestones=30"),
    "cosine_power": ("--set", "alpha=0.5"), "inverse_sqrt": ("--set", "timescale=30"),
    "hold_then_decay": ("--set", "hold=20", "--set", "every=5", "--set", "factor=1.2"), "wsd": (), "polynomial": (),
    "elastic_step": (),
}  # fmt: skip
QUADRATICS = {"file": ("noisy.npz",), "text": ("positive.txt",), "zoo": ("resnet20_cifar10",), "power law": LAW}
LOGS = {"one log": ("constant.csv",), "logs": ("constant.csv", "cosine.csv")}
CASES: dict[str, dict[str, tuple[str, ...]]] = {
    "plan": {
        "nothing": SHORT,
        **{name: (*words, *SHORT) for name, words in {**QUADRATICS, **LOGS}.items() if words != LAW},
        "model": ("measured:problem", *SHORT, "--batch-size", "4", "--spectrum-file", "planned.json"),
    },
    "schedule": {
        **{name: (*words, *SHORT) for name, words in QUADRATICS.items()},
        **{
            kind: ("--kind", kind, *SHORT, "--lr", "0.1", *REQUIRED.get(kind, ()))
            for kind in FACTORIES
            if kind != "eigencurve"
        },
        "load": ("--load", "saved.json"),
    },
    "compare": {name: (*words, *SHORT) for name, words in QUADRATICS.items()},
    "optimal": {name: (*words, *SHORT) for name, words in QUADRATICS.items()},
    "report": {name: (*words, *SHORT) for name, words in QUADRATICS.items()},
    "fit": LOGS,
    "estimate": {"model": ("measured:problem", "-o", "spectrum.json")},
    "spectrum show": QUADRATICS,
    "spectrum plot": QUADRATICS,
    "spectrum convert": {"file": ("noisy.npz", "out.json")},
    "spectrum compare": {"files": ("noisy.npz", "positive.txt")},
    "zoo list": {"alone": ()},
    "zoo show": {"name": ("resnet20_cifar10",)},
    "zoo export": {"name": ("resnet20_cifar10", "out.json")},
}


@dataclass(frozen=True)
class Result:
    """What a command printed and wrote, without times."""

    code: int
    shown: bytes
    files: tuple[tuple[str, bytes], ...]
    error: str


@dataclass
class Attack:
    """The commands, run in one folder; what was there before is restored after each."""

    place: Path

    def __post_init__(self) -> None:
        self.before = {path.name: path.read_bytes() for path in self.place.iterdir() if path.is_file()}
        self.known: dict[tuple[str, ...], Result] = {}

    def run(self, words: tuple[str, ...]) -> Result:
        """Run a command line once."""
        if words not in self.known:
            result = CliRunner(env={"NO_COLOR": "1", "COLUMNS": "100"}).invoke(app, list(words))
            sys.modules.pop("measured", None)
            code, raised = result.exit_code, result.exception
            if raised is not None and not isinstance(raised, SystemExit):
                code = -1
            files = tuple(sorted(self._written()))
            shown = TIMES.sub(b"", result.stdout_bytes + result.stderr_bytes)
            self.known[words] = Result(code, shown, files, result.stderr)
        return self.known[words]

    def _written(self) -> Iterator[tuple[str, bytes]]:
        for path in self.place.iterdir():
            if path.is_file() and path.read_bytes() != self.before.get(path.name):
                yield path.name, TIMES.sub(b"", path.read_bytes())
                path.unlink()
        for name, content in self.before.items():
            if not Path(self.place, name).exists():
                Path(self.place, name).write_bytes(content)


def attack(place: Path, small: bool) -> list[Counts]:
    """Every option of every command with every source; a short attack takes the quick commands."""
    prepare(place)
    argv, folder, path = sys.argv, Path.cwd(), list(sys.path)
    sys.argv, sys.path = ["eigencurve"], ["", *path]
    os.chdir(place)
    try:
        CliRunner().invoke(app, ["estimate", "measured:problem", "--noise", "--batch-size", "4", "-o", "noisy.npz"])
        sys.modules.pop("measured", None)
        runner = Attack(place)
        names = [name for name in COMMANDS if name not in NOT_RUN and (not small or name in QUICK)]
        found = [_attack_one(runner, name) for name in names]
    finally:
        os.chdir(folder)
        sys.argv, sys.path = argv, path
    found[-1].notes.append(f"not run: {', '.join(NOT_RUN)}")
    return found


def _attack_one(runner: Attack, name: str) -> Counts:
    counts = Counts(f"options of {name}")
    for words, command in leaves((name,), load(name)):
        cases = CASES.get(" ".join(words))
        if cases is None:
            counts.faults[f"{' '.join(words)} has no source in this attack"] += 1
            continue
        options = [p for p in command.params if p.param_type_name == "option" and p.name != "help"]
        for (source, base), option, setting in product(cases.items(), options, SETTINGS):
            if option.name != "settings" and setting != SETTINGS[0]:
                continue
            counts.cases += 1
            fault = fault_of(runner, words, base, option, setting)
            if fault:
                counts.faults[f"{' '.join(words)}, {source}: {fault}"] += 1
            else:
                counts.survived += 1
    return counts


def leaves(words: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """The commands below a command, or itself, each with its words."""
    inner = getattr(command, "commands", None)
    if not inner:
        yield words, command
        return
    for name, part in inner.items():
        yield from leaves((*words, name), part)


def fault_of(runner: Attack, command: tuple[str, ...], base: tuple[str, ...], parameter: Any, setting: str = "") -> str:
    """What is wrong with an option, or an empty string if it was applied or refused by name.

    Args:
        runner: Runs the command lines.
        command: Words of the command.
        base: Words that give it a source.
        parameter: The option.
        setting: Value of ``--set``.
    """
    option = max(parameter.opts, key=len)
    key = f"{' '.join(command)} {parameter.name}"
    permits = PERMITS.get(key, ())
    needed = permits or NEEDS.get(key, NEEDS.get(str(parameter.name), ()))
    start = (*command, *PERMITS_ALONE.get(key, (*base, *needed)))
    before = runner.run(start)
    typed = ("--set", setting) if parameter.name == "settings" else _typed(key, parameter, start)
    after = runner.run((*start, *typed))
    if after.code == 0:
        same = (before.code, before.shown, before.files) == (0, after.shown, after.files)
        return f"{' '.join(typed)} is ignored" if same else ""
    lines = after.error.strip().splitlines()
    if after.code not in (1, 2) or len(lines) != 1:
        return f"{option} ends with {after.code}: {lines[-1:]}"
    named = any(word in lines[0] for word in (option, *needed) if word.startswith("-"))
    return "" if named else f"{option} is refused, but not by name: {lines[0][:120]}"


def _typed(key: str, parameter: Any, before: tuple[str, ...]) -> Sequence[str]:
    """An option with a value that differs from its default and from that in ``before``."""
    option = max(parameter.opts, key=len)
    if parameter.is_flag:
        negative = parameter.secondary_opts[:1]
        return negative if parameter.default and negative and negative[0] not in before else [option]
    command, name = key.rsplit(" ", 1)
    if name == "output":
        return [option, OUTPUTS[command]]
    return [option, VALUES.get(name, "3")]


def prepare(place: Path) -> None:
    """Write the files that the commands read."""
    place.joinpath("positive.txt").write_text("0.001 20\n0.05 12\n0.7 6\n")
    place.joinpath("measured.py").write_text(PROBLEM)
    schedules = {"constant": ec.constant(1900, 0.01), "cosine": ec.cosine(1900, 0.01), "resumed": ec.linear(1900, 0.01)}
    for name, schedule in schedules.items():
        place.joinpath(f"{name}.csv").write_text(_log(ec.warmup(schedule, 100)))
    head, *rows = place.joinpath("resumed.csv").read_text().splitlines()
    place.joinpath("resumed.csv").write_text("\n".join([head, *rows, *rows[-3:]]) + "\n")
    saved = '{"kind": "cosine", "version": 1, "total_steps": 60, "lr": 0.1, "min_lr": 0.0}\n'
    place.joinpath("other.json").write_text(saved.replace("0.1", "0.2"))
    for name in ("saved.json", "existing.json", "existing.html", "existing.svg"):
        place.joinpath(name).write_text(saved)
    for name, loss in (("runs.sqlite", 0.5), ("other.sqlite", 0.25)):
        run, outcome = Run({"lr": 0.1, "schedule": "cosine"}, 0), Outcome({"loss": loss}, [(1.0, loss)])
        Store(place / name).add("soak", [run], [outcome], origin_here(), 1.0)
    _save_states(place)


def _save_states(place: Path) -> None:
    """The start of the model's run, and the state of its Adam."""
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 12), torch.nn.BatchNorm1d(12), torch.nn.Tanh(), torch.nn.Linear(12, 1)
    )
    torch.save(model.state_dict(), place / "start.pt")
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.randn(12, 3)).square().sum().backward()
    optimizer.step()
    torch.save(optimizer.state_dict(), place / "adam.pt")


def _log(schedule: ec.Schedule) -> str:
    steps = np.arange(0, schedule.total_steps, 20)
    travel = np.concatenate(([0.0], np.cumsum(schedule.values() / 0.01)))
    losses = 2 + 3 * (1 + travel[steps] / 20) ** -0.5 + 5 * schedule(steps)
    rows = [f"{step},{rate:.9g},{loss:.6f}" for step, rate, loss in zip(steps, schedule(steps), losses, strict=True)]
    return "\n".join(["step,lr,val_loss", *rows]) + "\n"
