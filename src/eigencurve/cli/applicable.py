"""Refuse options that do nothing: each command says in a table where its options apply."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import typer


def was_typed(context: typer.Context, name: str) -> bool:
    """Whether the user typed an option, with whatever value."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def typed_options(context: typer.Context, names: Iterable[str]) -> list[str]:
    """The options among ``names`` that the user typed, as on the command line."""
    return [option for name, option in _options(context).items() if name in names and was_typed(context, name)]


def require_applicable(
    context: typer.Context, kind: str, kinds: Mapping[str, str], applies: Mapping[str, Sequence[str]]
) -> None:
    """Refuse the options that the user typed but that do nothing in this case.

    Args:
        context: Context of the command.
        kind: The case, one of ``kinds``.
        kinds: Words for each case, such as ``"with a spectrum"``.
        applies: The cases in which an option applies; an option that is not listed always does.
    """
    for name, option in _options(context).items():
        if kind not in applies.get(name, (kind,)) and was_typed(context, name):
            where = " or ".join(kinds[known] for known in applies[name])
            raise ValueError(f"{option} must be left out {kinds[kind]}. It only applies {where}.")


def _options(context: typer.Context) -> dict[str, str]:
    """The parameters of a command by name, each with its longest option or its metavar."""
    return {
        str(parameter.name): max(_words(parameter), key=len, default=str(parameter.metavar or parameter.name))
        for parameter in context.command.params
    }


def _words(parameter: Any) -> list[str]:
    return [word for word in parameter.opts if word.startswith("--")]
