import numpy as np
import pytest
import torch
from tests.paper.byte_text.texts import settings, small_text

from eigencurve.runs.store import Run
from paper.byte_text.experiment import byte_experiment, preconditioned_spectrum, schedule_of, train_bytes
from paper.byte_text.scales import SMOKE_SCALE, earlier_run_settings
from paper.images.spectra import spectrum_of
from paper.models.transformer import next_byte_loss


@pytest.fixture
def text(tmp_path):
    return small_text(tmp_path)


def test_a_transformer_learns(text):
    chosen = settings(divisor=4, epochs=5, steps_per_epoch=40, batch_size=16, warmup_steps=20)
    (found,) = byte_experiment(text).run([Run(chosen, 0)])
    # The next letter is one of two, with probabilities 3/4 and 1/4: an entropy of 0.562 nats.
    assert 0.5 < found.metrics["test"] < 0.75
    assert found.metrics["valid"] == pytest.approx(found.curves["valid_loss"][-1][1], abs=1e-6)


def test_the_curves_are_those_of_the_run(text):
    chosen = settings(warmup_steps=3)
    (found,) = byte_experiment(text).run([Run(chosen, 0)])
    schedule = schedule_of(chosen, {})
    assert [t for t, _ in found.curves["train_loss"]] == list(range(12))
    assert [lr for _, lr in found.curves["lr"]] == pytest.approx(schedule.values())
    assert schedule(3) == pytest.approx(0.01)  # after the warmup
    assert [step for step, _ in found.curves["valid_loss"]] == [4, 8, 12]
    assert found.curves["train_loss"][0][1] == pytest.approx(np.log(256), rel=0.01)
    last = np.mean([loss for _, loss in found.curves["train_loss"][-4:]])
    assert found.metrics["train"] == pytest.approx(last, abs=1e-5)


def test_a_run_is_a_function_of_settings_and_seed(text, tmp_path):
    experiment = byte_experiment(text, folder=tmp_path / "checkpoints")
    one, again, other = (experiment.run([Run(settings(), seed)])[0] for seed in (1, 1, 2))
    assert one == again
    assert one.metrics != other.metrics


def test_a_rate_that_is_too_large_diverges(text):
    (found,) = byte_experiment(text).run([Run(settings(lr=1e30, max_norm=1e30, warmup_steps=0), 0)])
    assert found.diverged
    assert found.metrics == {"num_steps": 2.0} or found.metrics["num_steps"] > 2
    assert all(np.isfinite(loss) for _, loss in found.curves["train_loss"])


def test_the_spectrum_is_that_of_the_preconditioned_hessian(text):
    chosen = settings(context=6, num_rows=3, num_products=10, settle=None)
    model, _, trained = train_bytes(text, chosen, 0, {})
    for name, parameter in model.named_parameters():  # few parameters, so a dense Hessian is possible
        parameter.requires_grad_(name in ("norm.weight", "norm.bias", "blocks.0.norm1.bias"))
    estimate = preconditioned_spectrum(model, text, chosen, trained, 0, None)
    chosen_parameters = [p for p in model.parameters() if p.requires_grad]
    starts = np.linspace(0, len(text.train) - 7, 3).astype(int)
    rows = torch.stack([text.train[s : s + 7] for s in starts])
    loss = next_byte_loss(model(rows[:, :-1]), rows[:, 1:])
    gradient = torch.cat([g.flatten() for g in torch.autograd.grad(loss, chosen_parameters, create_graph=True)])
    hessian = torch.stack(
        [
            torch.cat([g.flatten() for g in torch.autograd.grad(one, chosen_parameters, retain_graph=True)])
            for one in gradient
        ]
    ).double()
    state = trained.optimizer.state
    second = torch.cat([state[p]["exp_avg_sq"].flatten() for p in chosen_parameters]).double()
    correction = 1 - 0.95 ** int(state[chosen_parameters[0]]["step"])
    scale = ((second / correction).sqrt() + 1e-8).rsqrt()
    dense = torch.linalg.eigvalsh(scale[:, None] * hessian * scale[None, :]).numpy()
    assert estimate.spectrum.dim == len(dense)
    assert estimate.spectrum.eigenvalues.max() == pytest.approx(dense.max(), rel=1e-3)  # float32
    assert estimate.spectrum.eigenvalues.min() == pytest.approx(dense.min(), rel=1e-2)


def test_an_earlier_run_ends_with_a_spectrum(text):
    (found,) = byte_experiment(text).run([Run(earlier_run_settings(SMOKE_SCALE), 0)])
    spectrum = spectrum_of(found)
    assert spectrum.weights.sum() == pytest.approx(1.0)
    assert spectrum.dim > 1_000
