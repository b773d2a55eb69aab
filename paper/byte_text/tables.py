"""The table of the transformer: which runs it needs, in two parts, and what the store has of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eigencurve import Spectrum
from eigencurve.forecast import LoggedRun, fit_runs
from eigencurve.runs import Run
from paper import checks
from paper.byte_text.experiment import byte_experiment, schedule_of
from paper.byte_text.predictions import Predictions, committed_predictions, predict
from paper.byte_text.report import METRICS, ByteRow, RateTrials, byte_page
from paper.byte_text.scales import (
    FIRST,
    RECOMMENDATION,
    REST,
    SCALES,
    ByteScale,
    earlier_run_settings,
    grids,
    recommended_grid,
)
from paper.data.folder import require_folder
from paper.data.ptb import ByteText, load_byte_text
from paper.engine.protocol import Settings, execute, in_turn, stored_outcomes, trials_of
from paper.engine.request import Request
from paper.engine.winners import mean_curve
from paper.images.spectra import spectrum_name, spectrum_of
from paper.page import ResultsPage
from paper.training.runs import TrainingRuns

SPECTRUM_SEED = 100
Grids = Mapping[str, Sequence[Settings]]


@dataclass(frozen=True, eq=False)
class ByteSetup:
    """What both parts share."""

    text: ByteText  # texts to train and measure on
    scale: ByteScale  # size of the experiment
    request: Request  # store, workers and progress

    @property
    def seeds(self) -> range:
        """Seeds of every schedule and rate."""
        return range(self.scale.num_seeds)

    def experiment(self, spectra: Mapping[str, Spectrum]) -> TrainingRuns:
        """The runs, with the spectra that their settings name."""
        return byte_experiment(self.text, spectra, self.request.checkpoints)

    def train(self, grids_of: Grids, spectra: Mapping[str, Spectrum]) -> None:
        """Do the runs that the store lacks: rate by rate, then seed by seed, then schedule by schedule."""
        runs = in_turn([Run(settings, seed) for settings in grid for seed in self.seeds] for grid in grids_of.values())
        self._execute(runs, spectra)

    def spectrum(self) -> dict[str, Spectrum]:
        """The preconditioned spectrum by its name; empty if it is not measured and ``part`` asks for no runs."""
        run = Run(earlier_run_settings(self.scale), SPECTRUM_SEED)
        if self.request.part != "finished":
            self._execute([run], {})
        (outcome,) = self.request.store.outcomes(self.experiment({}).name, [run])
        if outcome is None or outcome.diverged:
            return {}
        spectrum = spectrum_of(outcome)
        return {spectrum_name(run.settings, spectrum): spectrum}

    def rows(self, part: str, grids_of: Grids) -> list[ByteRow]:
        """What the store has of a part's runs."""
        return [self._row(part, schedule, grid) for schedule, grid in grids_of.items()]

    def _row(self, part: str, schedule: str, grid: Sequence[Settings]) -> ByteRow:
        rates = {}
        for settings in grid:
            outcomes = stored_outcomes(self.experiment({}), settings, self.seeds, self.request.store)
            trials = {metric: trials_of(settings, outcomes, metric) for metric in METRICS}
            rates[settings["lr"]] = RateTrials(trials, outcomes, len(self.seeds) - len(outcomes))
        return ByteRow(part, schedule, rates)

    def _execute(self, runs: Sequence[Run], spectra: Mapping[str, Spectrum]) -> None:
        execute(self.experiment(spectra), runs, self.request.store, self.request.workers, self.request.progress)


def make(request: Request) -> ResultsPage:
    """Train the part that ``request`` asks for, and make the page of everything that is finished.

    ``first`` are the runs that a forecast is fitted to, and the spectrum; ``rest`` are those that it is tested on. The
    rest is trained only after predictions for it are committed. Once the first part is finished, the page comes with
    a file of predictions to commit.
    """
    scale = request.scale_of(SCALES)
    setup = ByteSetup(find_text(request.data), scale, request)
    predictions = committed_predictions(scale.name)
    if request.part == REST and predictions is None:
        remedy = "Predictions come first: make them with --part finished and --output, then commit them."
        checks.refuse("paper", "part", "'first' or 'finished' without committed predictions", REST, remedy)
    first = grids(scale, FIRST)
    if request.part in (None, FIRST):
        setup.train(first, {})
    spectra = setup.spectrum()
    rest = grids(scale, REST, next(iter(spectra), ""))
    if predictions is not None:
        rest[RECOMMENDATION] = recommended_grid(scale, predictions.recommended)
    if request.part in (None, REST) and predictions is not None:
        setup.train(rest, spectra)
    fitted, held_back = setup.rows(FIRST, first), setup.rows(REST, rest)
    ready = predictions is None and spectra and not any(row.num_missing for row in fitted)
    new = predict_rest(fitted, rest, scale, spectra) if ready else None
    return byte_page(setup.text, scale, [*fitted, *held_back], predictions, new)


def logged_runs(rows: Sequence[ByteRow]) -> list[LoggedRun]:
    """The validation loss of every finished schedule and rate that did not diverge, as the mean over its seeds."""
    runs = []
    for row in rows:
        for rate, of_rate in row.rates.items():
            if of_rate.loss is not None:
                steps, losses = mean_curve(list(of_rate.outcomes.values()), "valid_loss")
                schedule = schedule_of(of_rate.trials["valid"].settings, {})
                name = f"{row.schedule}, lr {rate:g}"
                runs.append(LoggedRun([int(step) for step in steps], losses, schedule, name, "valid_loss"))
    return runs


def predict_rest(
    first: Sequence[ByteRow], rest: Grids, scale: ByteScale, spectra: Mapping[str, Spectrum]
) -> Predictions:
    """Fit a forecast to the finished rows of the first part, and predict the rest and the plan it leads to."""
    runs = logged_runs(first)
    made_by = (
        f"`fit_runs` on the validation losses of the first part: {len(runs)} schedules and rates, each the mean of"
        f" {scale.num_seeds} seeds"
    )
    return predict(fit_runs(runs), rest, scale, spectra, made_by)


def find_text(data: Path | None) -> ByteText:
    """The texts in ``data``, or in ptb/ below the data folder."""
    return load_byte_text(data or require_folder(None, "ptb/ with the Penn Treebank's ptb.*.txt") / "ptb")
