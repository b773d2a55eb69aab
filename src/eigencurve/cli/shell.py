"""Shell behaviour of all commands: fast start, one-line errors, exit codes, Ctrl-C."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

from eigencurve.cli.renamed import with_new_names

# The commands and the first line of their help. A test checks that it matches the docstring of the command.
COMMANDS = {
    "plan": "Recommend a schedule and a peak rate, with their uncertainty.",
    "estimate": "Measure the Hessian spectrum of a PyTorch model.",
    "schedule": "Make a learning-rate schedule, export it, or print code.",
    "compare": "Compare schedules by their expected loss.",
    "optimal": "Search for the numerically best schedule.",
    "fit": "Forecast schedules from the logs of finished runs.",
    "report": "Write a plan as a self-contained HTML page.",
    "spectrum": "Show, plot, convert or compare spectra.",
    "zoo": "List, show or export the spectra that ship with the package.",
    "demo": "Measure a small network, plan its next run, and race the plan.",
    "studio": "Explore schedules on an interactive page in your browser.",
}
# Arguments of the functions behind the commands, and the parameter that sets each.
SET_BY = {
    "total_steps": "steps", "warmup_steps": "warmup", "shape": "warmup_shape", "framework": "code", "amount": "epochs",
}  # fmt: skip
# The same for load_run, whose rates are a column.
SET_BY_IN_LOGS = {"lr": "lr_column"}
WRONG_USE, FAILURE, INTERRUPTED = 2, 1, 130


def new_app(**settings: Any) -> typer.Typer:
    """Create a Typer application with plain help, which starts fast and looks the same in a pipe and on a terminal."""
    common = {"rich_markup_mode": None, "pretty_exceptions_enable": False, "add_completion": False}
    return typer.Typer(**{**common, **settings})


class LazyGroup(TyperGroup):
    """The group of all commands. The module of a command is imported when the command is called or completed."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.options: dict[str, str] = {}
        for name, line in COMMANDS.items():
            self.commands[name] = TyperCommand(name, help=line)

    def list_commands(self, _context: Any) -> list[str]:
        """List the commands in the order in which people use them."""
        return list(COMMANDS)

    def resolve_command(self, context: Any, args: list[str]) -> Any:
        """Import the command that was called."""
        name, command, rest = super().resolve_command(context, args)
        if name is None or command is None:
            return name, None, rest
        called = load(name)
        self.options = options_of(called)
        return name, called, with_new_names(rest, self.options)

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,  # noqa: ARG002 -- always eigencurve
        complete_var: str | None = None,
        standalone_mode: bool = True,  # noqa: ARG002 -- this method prints the errors
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        """Run the command, print an error in one line, and exit: 2 for wrong use, 1 for a failure, 130 for Ctrl-C."""
        words = list(sys.argv[1:] if args is None else args)
        debug = "--debug" in words
        words = [word for word in words if word != "--debug"]
        try:
            result = super().main(words, "eigencurve", complete_var, False, windows_expand_args, **extra)
        except Exception as error:
            if debug and not hasattr(error, "format_message"):
                raise
            code = print_error(error, self.options)
        else:
            code = result if isinstance(result, int) else 0
        sys.exit(code)

    def invoke(self, context: Any) -> Any:
        """Run a command; Ctrl-C ends it with a one-line message."""
        try:
            with self._warnings_as_lines():
                return super().invoke(context)
        except KeyboardInterrupt as interrupt:
            typer.echo(f"Interrupted. {interrupt}".strip(), err=True)
            raise typer.Exit(INTERRUPTED) from None

    @contextmanager
    def _warnings_as_lines(self) -> Iterator[None]:
        """Print warnings about arguments and data in one line on standard error, without their place in the code."""
        with warnings.catch_warnings():
            warnings.simplefilter("default", UserWarning)
            other = warnings.showwarning

            def show(message: Any, category: Any, *place: Any) -> None:
                if issubclass(category, UserWarning):
                    typer.echo(f"warning: {in_options(message, self.options)}", err=True)
                else:
                    other(message, category, *place)

            warnings.showwarning = show  # type: ignore[assignment]
            yield


def load(name: str) -> Any:
    """Import the command ``name``."""
    command = typer.main.get_command(import_module(f"eigencurve.cli.{name}").app)
    command.name = name
    return command


def options_of(command: Any) -> dict[str, str]:
    """The options of a command, or of all commands of a group, by the name of the argument that each sets."""
    options: dict[str, str] = {}
    for inner in getattr(command, "commands", {}).values():
        options |= options_of(inner)
    for parameter in command.params:
        long = [option for option in parameter.opts if option.startswith("--")]
        options[parameter.name] = long[0] if long else str(parameter.metavar or parameter.name).upper()
    if "settings" in options:
        from eigencurve.schedules.kinds import (
            FACTORIES,
            settings_of,  # imports NumPy
        )

        names = (name for kind in FACTORIES for name in settings_of(kind))
        options = {**{name: f"--set {name}" for name in names}, **options}
    return options


def in_options(error: Any, options: Mapping[str, str]) -> str:
    """The one-line message of an error or a warning, with the options of a command in place of the arguments.

    >>> from eigencurve._check import Arg, ArgumentValueError
    >>> error = ArgumentValueError("wsd", "decay_steps", ("<= ", Arg("total_steps"), " = 5"), 9)
    >>> in_options(error, {"decay_steps": "--set decay_steps", "steps": "--steps"})
    '--set decay_steps must be <= --steps = 5, got 9.'
    """
    from eigencurve._check import ArgumentError, ArgumentWarning, quoted, spelled  # imports NumPy

    set_by = {**SET_BY, **(SET_BY_IN_LOGS if getattr(error, "function", "") == "load_run" else {})}

    def option_of(argument: str) -> str:
        return options.get(set_by.get(argument, argument)) or options.get(argument) or quoted(argument)

    text = str(error)
    if isinstance(error, ArgumentWarning):
        text = spelled(error.words, option_of)
    elif isinstance(error, ArgumentError):
        text = error.sentence(option_of, show_none=False)
        if text.startswith(quoted(error.argument)):  # no option of this command
            text = f"{error.function}: {text}"
    return " ".join(text.split())


def print_error(error: Exception, options: Mapping[str, str]) -> int:
    """Print ``error`` in one line on standard error, and return the exit code."""
    if hasattr(error, "format_message"):  # raised by the parser
        context = getattr(error, "ctx", None)
        where = f" See '{context.command_path} --help'." if context is not None else ""
        message = " ".join(error.format_message().split())
        typer.echo(f"error: {message}{'' if message[-1:] in '.?!' else '.'}{where}", err=True)
        return WRONG_USE
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        typer.echo(f"error: {os.fsdecode(error.filename)}: no such file or folder", err=True)
        return FAILURE
    is_explained = isinstance(error, ValueError | TypeError | ImportError | OSError | RuntimeError) and str(error)
    text = in_options(error, options)
    if not is_explained:
        text = f"{' '.join(f'{type(error).__name__}: {error}'.split())} (pass --debug for the traceback)"
    typer.echo(f"error: {text}", err=True)
    return WRONG_USE if isinstance(error, ValueError | TypeError) else FAILURE
