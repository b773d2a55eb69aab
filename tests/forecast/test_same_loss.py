import numpy as np
import pytest
from tests.reference.forecast import three_runs

import eigencurve as ec
from eigencurve.forecast import LoggedRun
from eigencurve.forecast.same_loss import require_same_loss

STEPS = np.arange(0, 101, 10)
CURVE = 2 + np.exp(-STEPS / 40)


def test_steps_that_count_epochs_are_refused():
    one, other, _ = three_runs()
    epochs = LoggedRun(other.steps // 20, other.losses, ec.constant(100, 0.0103), "epochs")
    match = r"in 'constant' and 'epochs', after the same sum of learning rates. Check that the steps of both logs count"
    with pytest.raises(ValueError, match=match):
        require_same_loss([one, epochs])


def run(losses=CURVE, schedule=None, **names):
    return LoggedRun(STEPS, losses, schedule or ec.cosine(100, 0.1), **names)


def test_runs_of_one_model_pass():
    noise = np.random.default_rng(0).normal(0, 0.05, len(STEPS))
    require_same_loss([run(), run(CURVE + noise), run(CURVE / 1.5 + 1, ec.constant(100, 0.3))])
    require_same_loss([run(metric="val_loss"), run(metric="eval/loss"), run(metric="loss")])
    require_same_loss([run()])


def test_training_and_validation_losses_are_refused():
    runs = [run(metric="loss", name="a"), run(metric="train/loss", name="b"), run(metric="val_loss", name="c")]
    match = r"fit_runs: 'runs' must record the same loss, got 'train/loss' and 'val_loss' in 'b' and 'c'. Pass loss="
    with pytest.raises(ValueError, match=match):
        require_same_loss(runs)


@pytest.mark.parametrize(
    "other", [CURVE / np.log(2), CURVE * 100, np.exp(CURVE), -CURVE], ids=["bits", "sum", "exp", "-"]
)
def test_losses_in_other_units_are_refused(other):
    with pytest.raises(
        ValueError, match=r"got .* in run 1 and 'b', after the same learning rates. Fit runs of one model"
    ):
        require_same_loss([run(), run(other, name="b")])


def test_only_steps_after_the_same_rates_are_compared():
    """A larger rate from step 50 on may well give another loss; before, it must not."""
    drop = ec.multistep(100, 0.1, [50])
    later = np.where(STEPS > 50, CURVE * 3, CURVE)
    require_same_loss([run(schedule=ec.constant(100, 0.1)), run(later, drop)])
    with pytest.raises(ValueError, match="same learning rates"):
        require_same_loss([run(schedule=ec.constant(100, 0.1)), run(CURVE * 3, drop)])


def test_the_loss_before_training_does_not_depend_on_the_rate():
    with pytest.raises(ValueError, match="got 3 and 30 in run 1 and run 2"):
        require_same_loss([run(), run(CURVE * 10, ec.constant(100, 0.3))])


def test_runs_without_a_common_step_are_not_compared():
    late = LoggedRun(STEPS + 200, CURVE * 10, ec.constant(300, 0.1))
    require_same_loss([run(), late])


def test_losses_around_zero_are_compared_by_their_range():
    require_same_loss([run(CURVE - 2.5), run(CURVE - 2.52)])
    with pytest.raises(ValueError, match="same learning rates"):
        require_same_loss([run(CURVE - 2.5), run(CURVE - 3.5)])
