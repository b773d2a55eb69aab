"""Run the command line in the test's own process."""

import sys

from typer.testing import CliRunner

from eigencurve.cli import app

LAW = ("--power-law", "1.5", "--kappa", "1e4")


def invoke(*words, **settings):
    """The result of a command."""
    result = CliRunner().invoke(app, list(words), **settings)
    sys.modules.pop("measured", None)
    return result


def run(*words, **settings):
    """The result of a command that succeeds."""
    result = invoke(*words, **settings)
    assert result.exit_code == 0, result.stderr
    return result


def refused(*words, code=2):
    """What a command prints that fails: one line on standard error, nothing else."""
    result = invoke(*words)
    assert result.exit_code == code, result.output
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(("error: ", "Interrupted."))
    return line
