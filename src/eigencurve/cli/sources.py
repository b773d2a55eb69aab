"""The spectrum that the command line selects."""

from __future__ import annotations

import sys
from pathlib import Path

from eigencurve import _check
from eigencurve.planning.subject import Subject, bytes_subject, file_subject, law_subject, zoo_subject
from eigencurve.spectrum.zoo import ZOO

STANDARD_INPUT = "standard input"


def subject_of(word: str, weight_decay: float | None = None) -> Subject:
    """The spectrum named by ``word``: a file, a name of the zoo, or ``-`` for standard input."""
    if word == "-":
        content = sys.stdin.buffer.read()
        suffix = ".npz" if content[:2] == b"PK" else ".json" if content.lstrip()[:1] == b"{" else ".txt"
        return bytes_subject(content, suffix, STANDARD_INPUT, weight_decay)
    path = Path(word)
    if word in ZOO and not path.exists():
        return zoo_subject(word, weight_decay)
    if not path.suffix and not path.exists():
        near = _check.suggestion(word, tuple(ZOO)) or "'eigencurve zoo' lists the names."
        raise ValueError(f"{word!r} is neither a file nor a spectrum of the zoo. {near}")
    return file_subject(path, weight_decay)


def optional_subject(
    word: str | None, power_law: float | None, kappa: float | None, weight_decay: float | None
) -> Subject | None:
    """The named spectrum or the assumed power law, or None if there is neither."""
    if power_law is None:
        if kappa is not None:
            raise ValueError("--kappa needs --power-law.")
        return None if word is None else subject_of(word, weight_decay)
    if word is not None:
        raise ValueError("Pass either a spectrum or --power-law, not both.")
    if kappa is None:
        raise ValueError("--power-law needs --kappa, the condition number; 1e5 is typical.")
    return law_subject(power_law, kappa, weight_decay)


def required_subject(
    word: str | None, power_law: float | None, kappa: float | None, weight_decay: float | None
) -> Subject:
    """The named spectrum or the assumed power law. Raises if there is neither."""
    subject = optional_subject(word, power_law, kappa, weight_decay)
    if subject is None:
        raise ValueError(
            "The spectrum is missing: pass a file, a name from 'eigencurve zoo', or --power-law and --kappa."
        )
    return subject
