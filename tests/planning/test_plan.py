import numpy as np
import pytest
from tests.reference.forecast import three_runs

import eigencurve as ec
from eigencurve.forecast import fit_runs
from eigencurve.hessian import estimate_noise, estimate_spectrum


def csv(path, run):
    rates = run.rates[np.minimum(run.steps, run.total_steps - 1)]
    rows = [f"{s},{r!r},{v!r}" for s, r, v in zip(run.steps.tolist(), rates.tolist(), run.losses.tolist(), strict=True)]
    path.write_text("\n".join(["step,lr,loss", *rows]) + "\n")
    return path


def test_nothing_but_the_steps_and_the_optimizer():
    plan = ec.plan(total_steps=50_000, optimizer="adamw")
    assert plan.name == "WSD, last 40 %"


def test_a_spectrum_of_the_zoo_and_its_file(tmp_path):
    plan = ec.plan("resnet20_cifar10", total_steps=1000)
    known = {entry.name: entry for entry in plan.inputs}
    assert known["spectrum"].source == "measured"
    spectrum = ec.Spectrum([0.01, 0.1, 1.0], [5, 3, 1])
    ec.save_spectrum(spectrum, tmp_path / "mine.npz")
    from_file = ec.plan(tmp_path / "mine.npz", total_steps=1000)
    assert from_file.schedule == ec.plan(spectrum, total_steps=1000).schedule


def test_an_estimate_with_its_noise():
    rng = np.random.default_rng(0)
    matrix = np.diag(rng.uniform(0.1, 1.0, 30))
    estimate = estimate_spectrum(matrix, 30, progress=False)
    plan = ec.plan(estimate, total_steps=500, noise=2.0, initial_error=1.0)
    assert {entry.name: entry.source for entry in plan.inputs}["gradient noise"] == "given"
    assert callable(estimate_noise)


def test_logged_runs_and_their_files(tmp_path):
    runs = three_runs()
    files = [csv(tmp_path / f"{run.name}.csv", run) for run in runs]
    assert ec.plan(*runs, total_steps=2000).name == ec.plan(*files, total_steps=2000).name
    assert ec.plan(fit_runs(runs), total_steps=2000).name == ec.plan(*runs, total_steps=2000).name


@pytest.mark.parametrize(
    ("sources", "options", "message"),
    [
        ((), {"total_steps": 0}, "'total_steps' must be >= 2"),
        ((), {"total_steps": 100, "optimizer": "lion"}, "'optimizer' must be one of"),
        ((), {"total_steps": 100, "warmup_steps": 100}, "'warmup_steps' must be < total_steps = 100"),
        ((), {"total_steps": 100, "lr": -1.0}, "'lr' must be > 0"),
        (("resnet20_cifar10", "resnet20_cifar10"), {"total_steps": 100}, "'sources' must be one spectrum"),
        (
            ("resnet20_cifar10",),
            {"total_steps": 100, "optimizer": "adamw"},
            "that of the spectrum, got 'adamw'. .*plain Hessian",
        ),
        (
            (ec.Spectrum([-2.0, -1.0], [1, 1]),),
            {"total_steps": 100, "weight_decay": 5e-4},
            "All of the curvature is negative, as at a maximum: check the sign of the loss",
        ),
    ],
)
def test_bad_requests(sources, options, message):
    with pytest.raises(ValueError, match=message):
        ec.plan(*sources, **options)


def test_negative_curvature_is_among_the_inputs_and_the_notes():
    few, most = (ec.plan(ec.Spectrum([-x, 1.0], [1, 1]), total_steps=20, weight_decay=5e-4) for x in (0.25, 2.0))
    (value,) = (known.value for known in few.inputs if known.name == "spectrum")
    assert value.endswith("20 % of the curvature negative")
    assert not any("curvature is negative" in note for note in few.notes)
    assert any("67 % of the curvature is negative" in note for note in most.notes)
    assert "curvature negative" not in str(ec.plan(ec.Spectrum([0.5, 1.0], [1, 1]), total_steps=20))


def test_a_source_of_no_known_kind():
    with pytest.raises(TypeError, match="'sources' must be a spectrum"):
        ec.plan(3.0, total_steps=100)


def test_defaults_are_assumed_and_options_are_given():
    def sources(answer):
        return {known.name: known.source for known in answer.inputs}

    law = ec.PowerLaw(1.5, 1e-3, 10.0)
    silent, told = ec.plan(law, total_steps=500), ec.plan(law, total_steps=500, optimizer="sgd", momentum=0.0)
    assert (sources(silent)["optimizer"], sources(silent)["momentum"]) == ("assumed", "assumed")
    assert (sources(told)["optimizer"], sources(told)["momentum"]) == ("given", "given")
    assert sources(ec.plan(total_steps=500))["optimizer"] == "assumed"
