"""From the words on the command line to a spectrum."""

from __future__ import annotations

import sys
from pathlib import Path

from eigencurve.planning.subject import Subject, bytes_subject, file_subject, law_subject, zoo_subject
from eigencurve.spectrum.zoo import ZOO

STANDARD_INPUT = "standard input"


def subject_of(word: str, weight_decay: float | None = None) -> Subject:
    """The spectrum of a file, of the zoo, or from standard input."""
    if word == "-":
        content = sys.stdin.buffer.read()
        suffix = ".npz" if content[:2] == b"PK" else ".json" if content.lstrip()[:1] == b"{" else ".txt"
        return bytes_subject(content, suffix, STANDARD_INPUT, weight_decay)
    path = Path(word)
    if word in ZOO and not path.exists():
        return zoo_subject(word, weight_decay)
    if not path.suffix and not path.exists():
        raise ValueError(f"{word!r} is neither a file nor a name of the zoo; 'eigencurve zoo' lists those.")
    return file_subject(path, weight_decay)


def any_subject(
    word: str | None, power_law: float | None, kappa: float | None, weight_decay: float | None
) -> Subject | None:
    """The spectrum that is named or assumed; None where neither is."""
    if power_law is None:
        if kappa is not None:
            raise ValueError("--kappa goes with --power-law.")
        return None if word is None else subject_of(word, weight_decay)
    if word is not None:
        raise ValueError("Give a spectrum or --power-law, not both.")
    if kappa is None:
        raise ValueError("--power-law needs --kappa, the condition number: 1e5 is common.")
    return law_subject(power_law, kappa, weight_decay)


def needed_subject(
    word: str | None, power_law: float | None, kappa: float | None, weight_decay: float | None
) -> Subject:
    """The same where there must be one."""
    subject = any_subject(word, power_law, kappa, weight_decay)
    if subject is None:
        raise ValueError("Which spectrum? Give a file, a name from 'eigencurve zoo', or --power-law and --kappa.")
    return subject
