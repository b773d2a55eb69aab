"""Options of version 0.1, which keep working for one version with a warning that names the new one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import typer

RENAMED = {"--num-steps": "--num-products"}
# Settings of a kind of schedule that were flags without a value.
FLAGS = ("three_phase",)


def with_new_names(words: Sequence[str], options: Mapping[str, str]) -> list[str]:
    """The words of a command line, with the new option in place of an old one.

    >>> with_new_names(["--kind", "wsd"], {"tail": "--set tail"})
    ['--kind', 'wsd']

    Args:
        words: Words after the command.
        options: The options of the command by the argument that each sets.
    """
    return list(_new_words(iter(words), options))


def _new_words(words: Iterator[str], options: Mapping[str, str]) -> Iterator[str]:
    for word in words:
        option, equals, value = word.partition("=")
        name = option.removeprefix("--").replace("-", "_")
        if RENAMED.get(option) in options.values():
            _warn(option, RENAMED[option])
            yield f"{RENAMED[option]}{equals}{value}"
        elif word.startswith("--") and options.get(name, "").startswith("--set "):
            text = value if equals else "true" if name in FLAGS else next(words, "")
            _warn(option, f"--set {name}={text}")
            yield from ("--set", f"{name}={text}")
        else:
            yield word


def _warn(old: str, new: str) -> None:
    typer.echo(f"warning: {old} will go in the next version: use {new}.", err=True)
