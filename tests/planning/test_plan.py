import numpy as np
import pytest
from tests.reference.forecast import three_runs, true_losses

import eigencurve as ec
from eigencurve.forecast import fit_runs, load_run
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


def test_a_log_is_known_by_its_content(tmp_path):
    runs = three_runs()
    files = [csv(tmp_path / f"{run.name}.csv", run) for run in runs]
    renamed = [file.rename(tmp_path / name) for file, name in zip(files, ("a.json", "b.txt", "c.csv"), strict=True)]
    assert ec.plan(*renamed, total_steps=2000).name == ec.plan(*runs, total_steps=2000).name


def test_logs_and_a_spectrum_together_are_refused_by_name(tmp_path):
    file = csv(tmp_path / "run.csv", three_runs()[0])
    ec.save_spectrum(ec.Spectrum([0.01, 0.1, 1.0], [5, 3, 1]), tmp_path / "mine.npz")
    match = r"plan: 'sources' must be logs of runs, or one spectrum, got the log .*run.csv.* and .*mine.npz.*, which is"
    with pytest.raises(ValueError, match=match):
        ec.plan(file, tmp_path / "mine.npz", total_steps=2000)


@pytest.mark.parametrize("rise", [5, 9, 25])
@pytest.mark.parametrize("first", [0, 9, 10])
@pytest.mark.filterwarnings("ignore:load_run")
def test_the_verdict_does_not_depend_on_a_warmup_that_the_log_hides(tmp_path, rise, first):
    """Rows every ten steps, and a warmup as in PyTorch, whose first rate is 0."""
    t, total = np.arange(1000), 1000
    runs = []
    for name, after in (("constant", np.ones(total)), ("cosine", (1 + np.cos(np.pi * t / total)) / 2)):
        rates, steps = 0.01 * np.minimum(t / rise, after), np.arange(first, total, 10)
        losses = true_losses(rates, steps)
        rows = [f"{s},{rates[s]:.9g},{loss:.5f}" for s, loss in zip(steps.tolist(), losses.tolist(), strict=True)]
        (tmp_path / f"{name}.csv").write_text("\n".join(["step,lr,loss", *rows]) + "\n")
        runs.append(tmp_path / f"{name}.csv")
    found = ec.plan(*runs, total_steps=1000)
    told = ec.plan(*(load_run(run, warmup_steps=rise) for run in runs), total_steps=1000, warmup_steps=rise)
    assert found.name == told.name


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


@pytest.mark.parametrize("rate", [1e9, 1.0, 1e-9])
@pytest.mark.parametrize("option", ["lr", "max_lr"])
def test_a_rate_far_from_the_logged_ones_is_refused(rate, option):
    limits = rf"plan: '{option}' must be from 0.0001 to 0.1, because the logged peak rate is 0.01, got {rate}"
    with pytest.raises(ValueError, match=limits + ". Log a run near that rate first"):
        ec.plan(*three_runs(), total_steps=2000, **{option: rate})


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
