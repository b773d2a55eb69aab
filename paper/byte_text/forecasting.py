"""A forecast fitted to the first part of the runs, and its predictions for the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from eigencurve import Schedule, Spectrum, plan
from eigencurve.forecast import Forecast, LoggedRun, fit_runs
from paper.byte_text.experiment import schedule_of
from paper.byte_text.predictions import PredictedLoss, Predictions
from paper.byte_text.report import ByteRow
from paper.byte_text.scales import RECOMMENDATION, ByteScale
from paper.engine.protocol import Settings
from paper.engine.winners import mean_curve
from paper.training.settings import points_of, through_points


def logged_runs(rows: Sequence[ByteRow]) -> list[LoggedRun]:
    """The validation loss of every finished schedule and rate that did not diverge, as the mean over its seeds."""
    runs = []
    for row in rows:
        for rate, found in row.rates.items():
            if found.loss is not None:
                steps, losses = mean_curve(list(found.outcomes.values()), "valid_loss")
                schedule = schedule_of(found.trials["valid"].settings, {})
                name = f"{row.schedule}, lr {rate:g}"
                runs.append(LoggedRun([int(step) for step in steps], losses, schedule, name, "valid_loss"))
    return runs


def predict_rest(
    first: Sequence[ByteRow], rest: Mapping[str, Sequence[Settings]], scale: ByteScale, spectra: Mapping[str, Spectrum]
) -> Predictions:
    """Fit a forecast to the first part and predict the final losses of the rest, and of the plan it leads to.

    Args:
        first: Finished rows of the first part.
        rest: Settings of the rest, by schedule.
        scale: Size of the experiment.
        spectra: Spectra that the settings name.
    """
    runs = logged_runs(first)
    made_by = (
        f"`fit_runs` on the validation losses of the first part: {len(runs)} schedules and rates, each the mean of"
        f" {scale.num_seeds} seeds"
    )
    return predict(fit_runs(runs), rest, scale, spectra, made_by)


def predict(
    forecast: Forecast,
    grids: Mapping[str, Sequence[Settings]],
    scale: ByteScale,
    spectra: Mapping[str, Spectrum],
    made_by: str,
) -> Predictions:
    """Predict the final losses of schedules, and of the plan that the forecast leads to.

    Args:
        forecast: The fit.
        grids: Settings to predict, by schedule.
        scale: Size of the experiment.
        spectra: Spectra that the settings name.
        made_by: How the forecast was made.
    """
    losses = {
        name: {settings["lr"]: final_loss(forecast, schedule_of(settings, spectra)) for settings in grid}
        for name, grid in grids.items()
    }
    recommended = {rate: points_of(_planned(forecast, scale, rate)) for rate in scale.rates}
    losses[RECOMMENDATION] = {
        rate: final_loss(forecast, through_points(points, scale.total_steps, rate))
        for rate, points in recommended.items()
    }
    return Predictions(made_by, losses, recommended)


def final_loss(forecast: Forecast, schedule: Schedule) -> PredictedLoss:
    """The predicted loss at the end of a schedule."""
    found = forecast.predict(schedule, at=[schedule.total_steps])
    return PredictedLoss(*(round(float(values[-1]), 6) for values in (found.loss, found.low, found.high)))


def _planned(forecast: Forecast, scale: ByteScale, rate: float) -> Schedule:
    found = plan(forecast, total_steps=scale.total_steps, optimizer="adamw", lr=rate, warmup_steps=scale.warmup_steps)
    return found.schedule
