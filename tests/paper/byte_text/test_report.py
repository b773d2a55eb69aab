import pytest

from eigencurve.runs.store import Outcome
from paper.byte_text.predictions import PredictedLoss, Predictions
from paper.byte_text.report import (
    METRICS,
    ByteRow,
    CheckedLoss,
    RateTrials,
    byte_page,
    curve_files,
    losses_table,
    missing_sentence,
    prediction_paragraphs,
    ranks_sentence,
    tails_sentence,
)
from paper.byte_text.scales import SMOKE_SCALE
from paper.data.ptb import ByteText
from paper.engine.protocol import trials_of


def runs(*losses, num_missing=0):
    """The runs of one rate, with losses by seed; None is a run that diverged."""
    outcomes = {}
    for seed, loss in enumerate(losses):
        curves = {"lr": [(0.0, 0.5), (1.0, 0.25)], "valid_loss": [(2.0, loss or 9.0)], "train_loss": []}
        metrics = {} if loss is None else dict.fromkeys(METRICS, loss)
        outcomes[seed] = Outcome(metrics, diverged=loss is None, curves=curves)
    return RateTrials({metric: trials_of({}, outcomes, metric) for metric in METRICS}, outcomes, num_missing)


def row(name="Linear", part="first", **rates):
    return ByteRow(part, name, {float(rate[1:]): found for rate, found in rates.items()})


def test_the_best_rate_needs_all_runs_and_no_divergence():
    assert row(r1=runs(2.0, 2.2), r3=runs(1.0, 1.2)).best_rate == 3
    assert row(r1=runs(2.0, 2.2), r3=runs(1.0, None)).best_rate == 1
    assert row(r1=runs(2.0, 2.2), r3=runs(1.0, num_missing=1)).best_rate is None
    assert row(r1=runs(None, None)).best_rate is None


def test_the_table_says_what_is_not_finished():
    rows = [row(r1=runs(2.0, 2.2), r3=runs(1.0, num_missing=1)), row("Constant", r1=runs(), r3=runs(1.5, 1.5))]
    lines = losses_table(rows).splitlines()
    assert lines[2] == "| Linear | first | 2.1000 ± 0.1414 | 1.0000 ± 0.0000 (1 of 2 seeds) | – | – |"
    assert lines[3].startswith("| Constant | first | not finished |")
    assert missing_sentence(rows) == "**Not finished:** Linear (1 run)."
    assert missing_sentence(rows[1:]) == ""


def test_predictions_and_outcomes_side_by_side():
    rows = [row("Elastic Step", "rest", r1=runs(2.0, 2.2), r3=runs(1.0, num_missing=1))]
    losses = {1.0: PredictedLoss(2.0, 1.9, 2.15), 3.0: PredictedLoss(1.0, 0.9, 1.1)}
    predictions = Predictions("a fit to 63 runs", {"Elastic Step": losses}, {})
    about, table, errors = prediction_paragraphs(rows, predictions)
    assert "a fit to 63 runs" in about
    assert "| Elastic Step | 1 | 2.0000 | 1.9000 … 2.1500 | 2.1000 ± 0.1414 | -0.1000 |" in table
    assert "| 1.0000 ± 0.0000 (1 of 2 seeds) | – |" in table
    assert errors.startswith("Mean absolute error over 1 schedules and rates: 0.1000")
    assert errors.endswith("1 of 1 outcomes are inside their interval.")
    assert prediction_paragraphs(rows, None) == ["No predictions are committed yet."]


def test_the_linear_tail_is_the_guess_for_the_other_one():
    rows = [
        row("WSD, linear 20%", r1=runs(2.0, 2.2), r3=runs(3.0)),
        row("WSD, 1-sqrt 20%", "rest", r1=runs(2.1, 2.4), r3=runs(2.8)),
        row("Elastic Step", "rest", r1=runs(9.0)),
    ]
    losses = {1.0: PredictedLoss(2.2, 2.0, 2.4), 3.0: PredictedLoss(3.4, 3.0, 3.5)}
    text = tails_sentence(rows, Predictions("", {"WSD, 1-sqrt 20%": losses}, {}))
    assert "For the 2 1-sqrt tails" in text
    assert "a mean absolute error of 0.1750; the forecast has 0.3250." in text  # (0.15 + 0.2) / 2, (0.05 + 0.6) / 2
    assert tails_sentence(rows[2:], Predictions("", {}, {})) == ""


def test_predictions_are_ranked_at_every_rate():
    pairs = {0.1: [(1.0, 2.0), (1.5, 2.1), (1.2, 2.4)], 0.01: [(1.0, 3.0), (2.0, 5.0), (1.5, 4.0)]}
    checked = [
        CheckedLoss("", rate, PredictedLoss(one, 0.0, 9.0), other, "") for rate in pairs for one, other in pairs[rate]
    ]
    ranks = ranks_sentence(checked)
    assert ranks == "Rank correlation of prediction and outcome over the schedules: 1.00 at 0.01, 0.50 at 0.1."
    assert ranks_sentence(checked[:2]) == ""


def test_curves_are_written_with_the_rate_of_the_last_update():
    files = curve_files([row("WSD, 1-sqrt 20%", r1=runs(2.0))])
    assert files == {"bytes_curves/wsd-1-sqrt-20_lr1_seed0.csv": b"step,lr,loss\n2,0.25,2.000000\n"}


@pytest.mark.parametrize("finished", [True, False])
def test_the_page(finished):
    import torch

    text = ByteText(torch.arange(9), torch.arange(9), "nine bytes")
    cosine = row("Cosine to 0", r1=runs(2.0, 2.1, 2.2))
    other = row("Linear", r1=runs(1.9, 2.05, 2.15) if finished else runs())
    page = byte_page(text, SMOKE_SCALE, [cosine, other], None)
    assert ("seed by seed" in page.body) == finished
    if finished:
        assert "| Linear | -0.0667 ± 0.0167 | -0.1384 … +0.0050 | not resolved |" in page.body
    assert list(page.figures) == ["bytes.png"]
    assert page.values["rows"][0]["rates"]["1"]["test"] == [2.0, 2.1, 2.2]
