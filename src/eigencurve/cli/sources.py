"""What a command works on: a spectrum with its noise and start, or the model of MODULE:FUNCTION."""

from __future__ import annotations

import importlib
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from eigencurve import _check
from eigencurve.cli import options
from eigencurve.spectrum.source import SpectrumSource, bytes_source, file_source, law_source, with_inputs, zoo_source
from eigencurve.spectrum.zoo import ZOO

STANDARD_INPUT = "standard input"


@dataclass(frozen=True)
class SpectrumOptions:
    """A spectrum, or the power law that is assumed instead."""

    spectrum: options.SpectrumWord = None
    power_law: Annotated[
        float | None,
        typer.Option(metavar="ALPHA", help="Assume a power law with this exponent instead of a measured spectrum."),
    ] = None
    kappa: Annotated[float | None, typer.Option(help="Condition number L/mu of the power law.")] = None
    weight_decay: options.WeightDecay = None

    @property
    def optional(self) -> SpectrumSource | None:
        """The spectrum, or None if there is none."""
        if self.power_law is None:
            if self.kappa is not None:
                raise ValueError("--kappa needs --power-law.")
            return None if self.spectrum is None else subject_of(self.spectrum, self.weight_decay)
        if self.spectrum is not None:
            raise ValueError("Pass either a spectrum or --power-law, not both.")
        if self.kappa is None:
            raise ValueError("--power-law needs --kappa, the condition number; 1e5 is typical.")
        return law_source(self.power_law, self.kappa, self.weight_decay)

    @property
    def required(self) -> SpectrumSource:
        """The spectrum. Raises if there is none."""
        subject = self.optional
        if subject is None:
            sources = "a file, a name from 'eigencurve zoo', or --power-law and --kappa"
            raise ValueError(f"The spectrum is missing: pass {sources}.")
        return subject


@dataclass(frozen=True)
class NoiseOptions:
    """The gradient noise and the start of a run."""

    noise: options.Noise = None
    batch_size: Annotated[
        int | None, typer.Option(help="Batch size of the run, if it is not the one that the noise was measured for.")
    ] = None
    initial_error: options.InitialError = None

    def added_to(self, source: SpectrumSource) -> SpectrumSource:
        """``source`` with this noise and this start."""
        return with_inputs(source, self.noise, self.initial_error, self.batch_size)


def subject_of(word: str, weight_decay: float | None = None) -> SpectrumSource:
    """The spectrum named by ``word``: a file, a name of the zoo, or ``-`` for standard input."""
    if word == "-":
        content = sys.stdin.buffer.read()
        suffix = ".npz" if content[:2] == b"PK" else ".json" if content.lstrip()[:1] == b"{" else ".txt"
        return bytes_source(content, suffix, STANDARD_INPUT, weight_decay)
    path = Path(word)
    if word in ZOO and not path.exists():
        return zoo_source(word, weight_decay)
    if not path.suffix and not path.exists():
        near = _check.suggestion(word, tuple(ZOO)) or "'eigencurve zoo' lists the names."
        raise ValueError(f"{word!r} is neither a file nor a spectrum of the zoo. {near}")
    return file_source(path, weight_decay)


def load_problem(word: str) -> tuple[Any, Any, Any]:
    """Import ``module:function`` with the current folder on the path, and return what the function returns."""
    module_name, name = require_problem(word)
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name is not None and module_name.startswith(error.name):
            raise ValueError(f"no module named {error.name!r} in the current folder or on Python's path.") from None
        raise
    function = getattr(module, name, None)
    if not callable(function):
        raise ValueError(f"module {module_name!r} has no function {name!r}.")
    try:
        made = function()
    except Exception as error:
        raise RuntimeError(
            f"{word} failed with {type(error).__name__}: {error} (pass --debug for the traceback)"
        ) from error
    if not isinstance(made, tuple) or len(made) != 3:
        raise ValueError(f"{word} must return (model, loss_fn, batches), got {_kind(made)}.")
    return made


def require_problem(word: str) -> tuple[str, str]:
    """The module and the function in ``module:function``; a path such as ``my/model.py:problem`` is corrected."""
    module_name, colon, name = word.partition(":")
    if not (module_name and colon and name):
        raise ValueError(f"MODULE:FUNCTION must look like my_project.training:problem, got {word!r}.")
    if module_name.endswith(".py") or os.sep in module_name:
        dotted = ".".join(Path(module_name.removesuffix(".py")).parts).strip("./")
        raise ValueError(f"MODULE:FUNCTION must name a module, got {word!r}. Did you mean '{dotted}:{name}'?")
    return module_name, name


def _kind(value: object) -> str:
    return f"a tuple of {len(value)}" if isinstance(value, tuple) else type(value).__name__
