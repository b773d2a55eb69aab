"""Shell behaviour of all commands: fast start, one-line errors, exit codes, Ctrl-C."""

from __future__ import annotations

import os
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# The commands and the first line of their help. A test checks that it matches the docstring of the command.
COMMANDS = {
    "plan": "Tell which schedule and rate a run should use, and how sure.",
    "estimate": "Measure the Hessian spectrum of a PyTorch model.",
    "schedule": "Make a learning-rate schedule, export it, or print code.",
    "compare": "Compare schedules by their expected loss.",
    "optimal": "Search for the numerically best schedule.",
    "fit": "Forecast schedules from the logs of finished runs.",
    "report": "Write a self-contained HTML report.",
    "spectrum": "Show, plot, convert or compare spectra.",
    "zoo": "List, show or export the spectra that ship with the package.",
    "demo": "Measure a small network, plan its next run, and race the plan.",
    "studio": "Explore schedules on an interactive page in your browser.",
}
# Arguments of the functions behind the commands, and the parameter that sets each.
OTHER_NAMES = {
    "total_steps": "steps", "warmup_steps": "warmup", "shape": "warmup_shape", "framework": "code", "amount": "epochs",
}  # fmt: skip
ARGUMENT = re.compile(r"[\w.]+: '(\w+)' must be ")
WRONG_USE, FAILURE, INTERRUPTED = 2, 1, 130


def new_app(**settings: Any) -> typer.Typer:
    """Create a Typer application with plain help, which starts fast and looks the same in a pipe and on a terminal."""
    common = {"rich_markup_mode": None, "pretty_exceptions_enable": False, "add_completion": False}
    return typer.Typer(**{**common, **settings})


class LazyGroup(TyperGroup):
    """The group of all commands. The module of a command is imported when the command is called or completed."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for name, line in COMMANDS.items():
            self.commands[name] = TyperCommand(name, help=line)

    def list_commands(self, _context: Any) -> list[str]:
        """List the commands in the order in which people use them."""
        return list(COMMANDS)

    def resolve_command(self, context: Any, args: list[str]) -> Any:
        """Import the command that was called."""
        name, command, rest = super().resolve_command(context, args)
        return name, None if name is None or command is None else load(name), rest

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
            code = print_error(error)
        else:
            code = result if isinstance(result, int) else 0
        sys.exit(code)

    def invoke(self, context: Any) -> Any:
        """Run a command. Ctrl-C ends it with a one-line message; errors name the options of the command."""
        try:
            with _warnings_as_lines():
                return super().invoke(context)
        except (ValueError, TypeError) as error:
            if len(error.args) == 1:
                error.args = (in_options(str(error), option_names(load(context.invoked_subcommand))),)
            raise
        except KeyboardInterrupt as interrupt:
            typer.echo(f"Interrupted. {interrupt}".strip(), err=True)
            raise typer.Exit(INTERRUPTED) from None


@contextmanager
def _warnings_as_lines() -> Iterator[None]:
    """Print Python's warnings as the command line does: one line on standard error, without the place in the code."""
    with warnings.catch_warnings():
        warnings.simplefilter("default", UserWarning)
        other = warnings.showwarning

        def show(message: Any, category: Any, *place: Any) -> None:
            if issubclass(category, UserWarning):
                typer.echo(f"warning: {_one_line(str(message))}", err=True)
            else:
                other(message, category, *place)

        warnings.showwarning = show  # type: ignore[assignment]
        yield


def load(name: str) -> Any:
    """Import the command ``name``."""
    command = typer.main.get_command(import_module(f"eigencurve.cli.{name}").app)
    command.name = name
    return command


def option_names(command: Any) -> dict[str, str]:
    """The parameters of a command, or of all commands of a group, by the name of the argument that they set."""
    found: dict[str, str] = {}
    for inner in getattr(command, "commands", {}).values():
        found |= option_names(inner)
    for parameter in command.params:
        long = [option for option in parameter.opts if option.startswith("--")]
        found[parameter.name] = long[0] if long else str(parameter.metavar or parameter.name).upper()
    return found | {name: found[option] for name, option in OTHER_NAMES.items() if option in found}


def in_options(message: str, names: dict[str, str]) -> str:
    """An error message of a function, with the options that the user typed in place of the function's arguments.

    >>> names = {"min_lr": "--min-lr", "alpha": "--alpha"}
    >>> in_options("cosine: 'min_lr' must be <= lr = 0.1, got 0.2.", names)
    '--min-lr must be <= lr = 0.1, got 0.2.'
    >>> print(in_options("schedule: 'alpha' must be left out for kind 'cosine', got 2.0. Its settings: min_lr.", names))
    --alpha must be left out for kind 'cosine', got 2.0. Its settings: --min-lr.
    """
    found = ARGUMENT.match(message)
    if found is None or found[1] not in names:
        return message
    head = f"{names[found[1]]} must be "
    # Arguments of several words, and the arguments in a list of them, cannot be mistaken for ordinary words.
    rest = re.sub(r"'?\b(\w+_\w+)\b'?(?!=)", lambda m: names.get(m[1], m[0]), message[found.end() :])
    start, listed, settings = rest.partition("Its settings: ")
    settings = re.sub(r"(?<![-\w])\w+", lambda m: names.get(m[0], m[0]), settings)
    return head + start.replace(", got None.", ".") + listed + settings


def print_error(error: Exception) -> int:
    """Print ``error`` in one line on standard error, and return the exit code."""
    if hasattr(error, "format_message"):  # raised by the parser
        context = getattr(error, "ctx", None)
        where = f" See '{context.command_path} --help'." if context is not None else ""
        message = _one_line(error.format_message())
        typer.echo(f"error: {message}{'' if message[-1:] in '.?!' else '.'}{where}", err=True)
        return WRONG_USE
    if isinstance(error, FileNotFoundError) and error.filename is not None:
        typer.echo(f"error: {os.fsdecode(error.filename)}: no such file or folder", err=True)
        return FAILURE
    known = isinstance(error, ValueError | TypeError | ImportError | OSError | RuntimeError)
    text = str(error) if known and str(error) else f"{type(error).__name__}: {error} (pass --debug for the traceback)"
    typer.echo(f"error: {_one_line(text)}", err=True)
    return WRONG_USE if isinstance(error, ValueError | TypeError) else FAILURE


def _one_line(text: str) -> str:
    return " ".join(text.split())
