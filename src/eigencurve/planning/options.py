"""Which options of ``plan`` apply to which kind of source."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from eigencurve import _check
from eigencurve.forecast.forecast import Forecast
from eigencurve.forecast.formats.recognise import is_log
from eigencurve.forecast.runs import LoggedRun
from eigencurve.planning.subject import Subject
from eigencurve.spectrum.power_law import PowerLaw
from eigencurve.spectrum.zoo import ZOO

# The kinds of sources: alone, and after "with".
KINDS = {
    "nothing": "without a source",
    "spectrum": "with a spectrum",
    "power law": "with a power law",
    "model": "with a model",
    "logs": "with logged runs",
}
EVERY, QUADRATIC = tuple(KINDS), ("spectrum", "power law", "model")
# An option that changes neither the answer nor its code for a kind of source does not apply to it.
APPLIES: Mapping[str, Sequence[str]] = {
    "optimizer": EVERY,
    "lr": EVERY,
    "max_lr": EVERY,
    "warmup_steps": EVERY,
    "momentum": EVERY,
    "nesterov": EVERY,
    "weight_decay": EVERY,
    "batch_size": EVERY,
    "noise": QUADRATIC,
    "initial_error": QUADRATIC,
}


def require_applicable(function: str, kind: str, given: Mapping[str, Any]) -> None:
    """Refuse an option that does nothing for a kind of source.

    Args:
        function: Name of the function, for the message.
        kind: One of ``KINDS``.
        given: Options by name; None and False count as not given.
    """
    for name, value in given.items():
        if value is not None and value is not False and kind not in APPLIES[name]:
            _check.refuse(function, name, f"left out {KINDS[kind]}", value, where_it_applies(APPLIES[name]))


def where_it_applies(kinds: Sequence[str]) -> str:
    """To which sources an option applies, as a sentence.

    >>> where_it_applies(("spectrum", "model"))
    'It applies to a spectrum and a model; pass one, or leave it out.'
    """
    words = [KINDS[kind].removeprefix("with ") for kind in kinds]
    listed = " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))
    return f"It applies to {listed}; pass one, or leave it out."


def kind_of(sources: Sequence[Any]) -> str:
    """The kind of the sources of a plan, one of ``KINDS``."""
    if not sources:
        return "nothing"
    runs = [_is_run(source) for source in sources]
    if all(runs):
        return "logs"
    if any(runs):
        log, other = (_check.shown(sources[runs.index(kind)]) for kind in (True, False))
        kinds = f"the log {log} and {other}, which is none"
        raise ValueError(f"plan: 'sources' must be logs of runs, or one spectrum, got {kinds}. Plan from one kind.")
    if len(sources) > 1:
        remedy = "Pass several logs, or one spectrum."
        _check.refuse("plan", "sources", "one spectrum", f"{len(sources)} sources", remedy)
    return _kind_of_one(sources[0])


def _kind_of_one(source: Any) -> str:
    raw = source.raw if isinstance(source, Subject) else source
    if isinstance(raw, PowerLaw):
        return "power law"
    is_operator = callable(source) and hasattr(source, "dim") and hasattr(source, "fingerprint")
    return "model" if is_operator else "spectrum"


def _is_run(source: Any) -> bool:
    if isinstance(source, LoggedRun | Forecast):
        return True
    if not isinstance(source, str | os.PathLike) or str(source) in ZOO:
        return False
    path = Path(source)
    if not path.suffix and not path.exists():  # a wrong name of the zoo
        return False
    return is_log(path)
