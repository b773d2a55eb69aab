"""Sentences that follow from the trials: which schedule is best, which are close, and how the paper compares."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from paper.engine.protocol import Trials

CLOSE = 2.0


def standard_errors(first: Trials, second: Trials) -> float:
    """Distance of two means in units of the standard error of their difference."""
    variance = sum(t.deviation**2 / len(t.values) for t in (first, second) if t.values)
    gap = abs((first.mean or 0.0) - (second.mean or 0.0))
    return gap / math.sqrt(variance) if variance > 0 else math.inf


def ranked(trials: Mapping[str, Trials], minimise: bool) -> list[str]:
    """Names of the schedules with a mean, the best first."""
    means = {name: found.mean for name, found in trials.items() if found.mean is not None}
    return sorted(means, key=lambda name: means[name] if minimise else -means[name])


def best_sentence(
    what: str, trials: Mapping[str, Trials], minimise: bool, number: Callable[[Trials], str] = Trials.text
) -> str:
    """The best schedule by what the trials measure, and all others within two standard errors of it."""
    names = ranked(trials, minimise)
    if not names:
        return f"Best {what}: none, every trial diverged."
    best = trials[names[0]]
    close = [name for name in names[1:] if standard_errors(best, trials[name]) < CLOSE]
    rest = f"Within two standard errors: {'; '.join(close)}." if close else "No other is within two standard errors."
    return f"Best {what}: {names[0]} ({number(best)}). {rest}"


def paper_sentence(trials: Mapping[str, Trials], published: Mapping[str, str], minimise: bool) -> str:
    """How the best of the paper's ``published`` numbers ranks here; empty if fewer than two schedules are in both."""
    theirs = {name: _number(text) for name, text in published.items() if name in trials and text != "–"}
    if len(theirs) < 2:
        return ""
    best = min(theirs, key=lambda name: theirs[name] if minimise else -theirs[name])
    here = ranked({name: trials[name] for name in theirs}, minimise)
    of = f"Of the {len(theirs)} schedules that are also in the paper, {best} is best"
    if best not in here:
        return f"{of} there and diverged in every trial here."
    rank = here.index(best) + 1
    if rank == 1:
        return f"{of} there and here."
    gap = standard_errors(trials[here[0]], trials[best])
    return f"{of} there but number {rank} here, {gap:.1f} standard errors behind {here[0]}."


def _number(published: str) -> float:
    return float(published.lstrip("*").split("±")[0])
