"""Run the command line in the test's own process."""

from typer.testing import CliRunner

from eigencurve.cli import app

LAW = ("--power-law", "1.5", "--kappa", "1e4")


def run(*words, **settings):
    result = CliRunner().invoke(app, list(words), **settings)
    assert result.exit_code == 0, result.stderr
    return result
