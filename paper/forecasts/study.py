"""Everything that the page on forecasts reports, fitted and forecast."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from paper.data.curves import published_runs
from paper.engine.progress import Progress
from paper.forecasts.best import Improvement, improve
from paper.forecasts.splits import Outcome, Score, fewer_runs, fit_together, fixed_exponent, forecast_split, splits_of

# The fixed exponents γ that are compared with the average over γ.
EXPONENTS = (0.0, 0.2, 0.4, 0.6)


@dataclass(frozen=True, eq=False)
class Study:
    """What the page reports."""

    outcomes: tuple[Outcome, ...]  # every split with its forecasts
    fewer: dict[str, dict[tuple[str, ...], Score]]  # scores of fits to fewer runs, by roles, by name of the split
    exponents: dict[str, dict[float, Score]]  # scores of fits with one γ, by γ, by name of the split
    improvements: tuple[Improvement, ...]  # the best schedule of every model
    # Scores of one model fitted to the runs at both peak rates of Llama, by name of the split.
    together: dict[str, Score]


def measure(data: Path | None, progress: bool = False) -> Study:
    """Fit and forecast every split (about a minute)."""
    splits = splits_of(published_runs(data))
    outcomes, fewer, exponents, improvements = [], {}, {}, []
    with Progress("splits", len(splits), progress) as bar:
        for done, split in enumerate(splits):
            bar.show(done)
            outcomes.append(forecast_split(split))
            if not split.transfer:
                fewer[split.name] = fewer_runs(split)
                exponents[split.name] = {gamma: fixed_exponent(split, gamma) for gamma in EXPONENTS}
                improvements.append(improve(split, outcomes[-1].forecast))
        bar.show(len(splits))
    llama = [split for split in splits if split.family == "Llama" and not split.transfer]
    together = fit_together(llama) if llama else {}
    return Study(tuple(outcomes), fewer, exponents, tuple(improvements), together)
