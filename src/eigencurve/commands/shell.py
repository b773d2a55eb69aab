"""Shell behaviour of all commands: fast start, one-line errors, exit codes, Ctrl-C."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperCommand, TyperGroup

# The commands and the first line of their help. A test checks that it matches the docstring of the command.
COMMANDS = {
    "plan": "Answer which schedule and which rate a run should use, how good that is, and how sure.",
    "estimate": "Measure the Hessian spectrum of a PyTorch model.",
    "schedule": "Make a learning-rate schedule, export it, or print code.",
    "compare": "Compare schedules by their expected loss.",
    "optimal": "Search for the numerically best schedule.",
    "fit": "Forecast schedules from the logs of finished runs.",
    "report": "Write a self-contained HTML report.",
    "spectrum": "Show, plot, convert or compare spectra.",
    "zoo": "List, show or export the spectra that ship with the package.",
    "reproduce": "Make a table or figure of the experiments, or list them all.",
    "studio": "Explore schedules on an interactive page in your browser.",
}
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
        """Run a command. Ctrl-C ends it with a one-line message."""
        try:
            return super().invoke(context)
        except KeyboardInterrupt as interrupt:
            typer.echo(f"Interrupted. {interrupt}".strip(), err=True)
            raise typer.Exit(INTERRUPTED) from None


def load(name: str) -> Any:
    """Import the command ``name``."""
    command = typer.main.get_command(import_module(f"eigencurve.commands.{name}").app)
    command.name = name
    return command


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
