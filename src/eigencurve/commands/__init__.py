"""The commands, one per module. :mod:`eigencurve.cli` imports a module when its command is called."""
