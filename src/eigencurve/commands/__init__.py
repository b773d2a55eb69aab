"""One module a command. Imported by :mod:`eigencurve.cli` when the command is called."""
