import pytest

from eigencurve.forecast.columns import is_loss, is_rate, named, split_of, step_name


@pytest.mark.parametrize(
    "name", ["step", "Step", "iter", "iteration", "global_step", "_step", "trainer/global_step", "train/global_step"]
)
def test_steps(name):
    assert step_name(["epoch", name, "loss"]) == name


def test_the_trainers_count_goes_before_that_of_the_logger():
    assert step_name(["_step", "loss", "trainer/global_step"]) == "trainer/global_step"
    assert step_name(["epoch", "loss"]) is None


RATES = (
    "lr", "LR", "learning_rate", "lr-AdamW", "lr-SGD", "lr-Adam/pg1", "train/learning_rate", "optim/lr", "lr-SGD-1",
)  # fmt: skip
LOSSES = (
    "loss", "Loss", "train_loss", "train/loss", "train_loss_step", "train_loss_epoch", "val_loss", "eval_loss",
    "eval/loss", "validation_loss", "val/loss", "loss/train", "Loss/val",
)  # fmt: skip
OTHERS = ("epoch", "accuracy", "lr-SGD-momentum", "lr-Adam/pg1-weight_decay", "loss_scale", "grad_norm", "lrs", "gloss")


@pytest.mark.parametrize("name", [*RATES, *LOSSES, *OTHERS])
def test_rates_and_losses(name):
    assert is_rate(name) == (name in RATES)
    assert is_loss(name) == (name in LOSSES)


@pytest.mark.parametrize(
    ("name", "split"),
    [
        ("train_loss", "training"), ("train/loss", "training"), ("loss/train", "training"), ("val_loss", "validation"),
        ("eval/loss", "validation"), ("Loss/Val", "validation"), ("test_loss", "validation"), ("loss", ""), ("", ""),
        ("interval_loss", ""), ("constraint", ""),
    ],
)  # fmt: skip
def test_splits(name, split):
    assert split_of(name) == split


def test_a_name_is_found_also_in_another_case():
    assert named("LOSS", ["a", "loss"]) == "loss"
    assert named("loss", ["Loss", "loss"]) == "loss"
    assert named("LOSS", ["Loss", "loss"]) is None
    assert named("x", ["loss"]) is None
