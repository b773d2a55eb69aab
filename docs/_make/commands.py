"""MkDocs hook that generates the command-line reference from the commands."""

from __future__ import annotations

import re
from typing import Any

from eigencurve.cli.shell import COMMANDS, load

MARKER = "<!-- commands -->"
HEAD = "| argument or option | meaning |\n| --- | --- |"
# Lines of a help text that are example commands, with or without a leading "Examples:".
EXAMPLE = re.compile(r"^(?:Examples?: *| +)?(?P<command>eigencurve .+)$")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Replace the marker on a page by the command reference."""
    return markdown.replace(MARKER, command_reference()) if MARKER in markdown else markdown


def command_reference() -> str:
    """The help text, arguments and options of every command, in Markdown."""
    return "\n\n".join(section(load(name), f"eigencurve {name}") for name in COMMANDS)


def section(command: Any, called: str) -> str:
    """The section of one command, followed by its subcommands."""
    context = command.make_context(called, [], resilient_parsing=True)
    records = [parameter.get_help_record(context) for parameter in command.get_params(context)]
    table = "\n".join([HEAD, *(f"| `{_cell(names)}` | {_cell(text)} |" for names, text in filter(None, records))])
    below = [section(command.get_command(context, name), f"{called} {name}") for name in _below(command, context)]
    return "\n\n".join([f"## {called}", _text(command.help or ""), table, *below])


def _below(command: Any, context: Any) -> list[str]:
    return command.list_commands(context) if hasattr(command, "list_commands") else []


def _text(help_text: str) -> str:
    """The help text of a command, with its examples in a code block."""
    lines = help_text.replace("\b\n", "").splitlines()
    commands = [found["command"] for line in lines if (found := EXAMPLE.match(line))]
    said = "\n".join(line for line in lines if not EXAMPLE.match(line)).strip()
    return said + ("\n\n```sh\n" + "\n".join(commands) + "\n```" if commands else "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
