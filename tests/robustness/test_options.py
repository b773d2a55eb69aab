"""The attack on options notices one that is ignored, and one that is refused without its name."""

from typing import Annotated

import pytest
import typer

pytest.importorskip("torch", reason="PyTorch is not installed")
from robustness.options import CASES, NOT_RUN, Attack, Result, fault_of, leaves

from eigencurve.cli.shell import COMMANDS, load

app = typer.Typer()


@app.command()
def made(
    used: Annotated[int, typer.Option()] = 1,
    flag: Annotated[bool, typer.Option("--flag/--no-flag")] = True,
) -> None:
    """Stand in for a command."""


class Recorded(Attack):
    """Answers by the last words of a command line."""

    def __init__(self, answers):
        self.answers = answers

    def run(self, words):
        return self.answers.get(words[-1], Result(0, b"same", (), ""))


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (Result(0, b"same", (), ""), "--used 3 is ignored"),
        (Result(0, b"other", (), ""), ""),
        (Result(0, b"same", (("file", b""),), ""), ""),
        (Result(2, b"", (), "error: --used must be left out.\n"), ""),
        (Result(2, b"", (), "error: no.\n"), "--used is refused, but not by name: error: no."),
        (Result(-1, b"", (), ""), "--used ends with -1: []"),
    ],
)
def test_an_option_is_applied_refused_or_ignored(answer, fault):
    parameter = next(p for p in typer.main.get_command(app).params if p.name == "used")
    assert fault_of(Recorded({"3": answer}), ("made",), (), parameter) == fault


def test_a_flag_that_is_on_is_switched_off():
    parameter = next(p for p in typer.main.get_command(app).params if p.name == "flag")
    switched = Recorded({"--no-flag": Result(0, b"other", (), "")})
    assert fault_of(switched, ("made",), (), parameter) == ""


def test_every_command_has_a_source():
    names = {" ".join(words) for name in COMMANDS if name not in NOT_RUN for words, _ in leaves((name,), load(name))}
    assert names == set(CASES)
