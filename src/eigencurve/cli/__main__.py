"""``python -m eigencurve.cli``: the command line without its entry point."""

from eigencurve.cli import app

app()
