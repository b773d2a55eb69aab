import inspect
import re

import numpy as np
import pytest
from tests.planning.logged import runs, write_logs
from tests.reference.forecast import three_runs, true_losses
from tests.spectrum.test_measurement import record
from tests.spectrum.test_noise import noise

import eigencurve as ec
from eigencurve.forecast import fit_runs, load_run
from eigencurve.hessian import estimate_spectrum
from eigencurve.planning.plan import APPLIES, KINDS, kind_of, require_applicable


def csv(path, run):
    rates = run.rates[np.minimum(run.steps, run.total_steps - 1)]
    rows = [f"{s},{r!r},{v!r}" for s, r, v in zip(run.steps.tolist(), rates.tolist(), run.losses.tolist(), strict=True)]
    path.write_text("\n".join(["step,lr,loss", *rows]) + "\n")
    return path


def test_nothing_but_the_steps_and_the_optimizer():
    plan = ec.plan(total_steps=50_000, optimizer="adamw")
    assert plan.name == "wsd_40"


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
    with pytest.raises(ec.ArgumentError) as error:
        ec.plan(file, tmp_path / "mine.npz", total_steps=2000)
    assert error.value.argument == "sources"
    assert re.search("run.csv.* is a log and .*mine.npz", str(error.value))


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


def test_negative_curvature_is_among_the_inputs_and_the_warnings():
    few, most = (ec.plan(ec.Spectrum([-x, 1.0], [1, 1]), total_steps=20, weight_decay=5e-4) for x in (0.25, 2.0))
    (value,) = (known.value for known in few.inputs if known.name == "spectrum")
    assert value.endswith("20 % of the curvature negative")
    assert not any("curvature is negative" in sentence for sentence in few.warnings)
    assert any("67 % of the curvature is negative" in sentence for sentence in most.warnings)
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


# Every option of ``plan`` with every kind of source: it changes the answer or is recorded in it, or it is refused.
T = 60
VALUES = {
    "optimizer": "sgd",
    "lr": 0.004,
    "max_lr": 0.003,
    "warmup_steps": 7,
    "momentum": 0.3,
    "nesterov": True,
    "weight_decay": 0.07,
    "noise": 5.0,
    "initial_error": 0.25,
    "batch_size": 4,
}
# The line of the inputs with each option.
RECORDED = {
    "optimizer": "optimizer", "lr": "peak rate", "max_lr": "highest rate", "warmup_steps": "warmup",
    "momentum": "momentum", "nesterov": "momentum", "weight_decay": "weight decay", "noise": "gradient noise",
    "initial_error": "start", "batch_size": "batch size",
}  # fmt: skip
# Options that another one needs.
NEEDS = {"nesterov": {"momentum": 0.3}}


def operator():
    torch = pytest.importorskip("torch")
    from eigencurve.hessian import HessianOperator

    torch.manual_seed(0)
    x = torch.randn(12, 3)
    return HessianOperator(torch.nn.Linear(3, 1), torch.nn.MSELoss(), (x, x.sum(1, keepdim=True)))


def measured_file(folder):
    spectrum = ec.Spectrum([0.1, 0.2, 3.0], [1, 6, 3], dim=10)
    ec.save_spectrum(spectrum, folder / "noisy.npz", record(), noise())
    return folder / "noisy.npz"


def estimate():
    return estimate_spectrum(np.array([[2.0, 0.5], [0.5, 1.0]]), 2, weight_decay=0.01, progress=False)


SOURCES = (
    "nothing", "zoo", "file", "spectrum", "power law", "estimate", "operator", "one log", "logs", "forecast",
)  # fmt: skip
KIND = {
    "nothing": "nothing", "power law": "power law", "operator": "model", "one log": "logs", "logs": "logs",
    "forecast": "logs",
}  # fmt: skip
# The cells that are refused; every other one changes the answer and is recorded.
REFUSED = {
    *((name, source) for name in ("noise", "initial_error") for source in ("nothing", "one log", "logs", "forecast")),
    # It rescales measured noise, and these have none.
    *(("batch_size", source) for source in ("spectrum", "power law", "estimate")),
}


def sources_of(name, folder):
    """The sources of a kind, as arguments of ``plan``."""
    match name:
        case "nothing":
            return ()
        case "zoo":
            return ("resnet20_cifar10",)
        case "file":
            return (measured_file(folder),)
        case "spectrum":
            return (ec.Spectrum([0.01, 0.1, 1.0], [5, 3, 1]),)
        case "power law":
            return (ec.PowerLaw(1.2, 1e-3, 1.0),)
        case "estimate":
            return (estimate(),)
        case "operator":
            return (operator(),)
        case "one log":
            return (write_logs(folder)[0],)
        case "logs":
            return tuple(runs())
    return (fit_runs(runs()),)


def needed(source, name):
    """What the source needs in addition to the option, and without it."""
    return {"batch_size": 4} if source == "operator" and name not in ("noise", "batch_size") else {}


def recorded(plan):
    """Everything that a plan says and generates."""
    return plan.to_dict(), str(plan), plan.code()


def test_every_option_has_a_value_here_and_a_row_in_the_table():
    parameters = inspect.signature(ec.plan).parameters
    names = {name for name, p in parameters.items() if p.kind is p.KEYWORD_ONLY} - {"total_steps"}
    assert names == set(VALUES) == set(APPLIES)
    assert {kind for kinds in APPLIES.values() for kind in kinds} <= set(KINDS)


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """The source of every kind, and what its plan says without the option in question, computed once."""
    known = {}

    def ask(source, *without):
        key = (source, *map(str, without))
        if key not in known:
            sources = sources_of(source, tmp_path_factory.mktemp("sources"))
            known[key] = sources, recorded(ec.plan(*sources, total_steps=T, **dict(without)))
        return known[key]

    return ask


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("source", SOURCES)
def test_an_option_is_applied_or_refused_by_name(source, name, answers):
    extra = {**NEEDS.get(name, {}), **needed(source, name)}
    without = {"batch_size": 8} if source == "operator" and name in ("noise", "batch_size") else extra
    sources, before = answers(source, *sorted(without.items()))
    if (name, source) in REFUSED:
        with pytest.raises(ValueError, match=rf"'{name}' must be .*, got .*\. \w+"):
            ec.plan(*sources, total_steps=T, **{**extra, name: VALUES[name]})
        return
    plan = ec.plan(*sources, total_steps=T, **{**extra, name: VALUES[name]})
    after = recorded(plan)
    assert all(old != new for old, new in zip(before[:2], after[:2], strict=True))
    # The highest rate is the peak rate of every schedule of a forecast.
    line = "peak rate" if name == "max_lr" and KIND.get(source) == "logs" else RECORDED[name]
    assert line in {known.name for known in plan.inputs if known.source == "given"}


def test_the_kind_of_a_source(tmp_path):
    for source in SOURCES:
        assert kind_of(sources_of(source, tmp_path)) == KIND.get(source, "spectrum")


def test_an_option_that_does_not_apply_names_the_sources_that_it_applies_to():
    require_applicable("plan", "nothing", {"momentum": 0.9, "noise": None, "nesterov": False})
    with pytest.raises(ValueError, match=r"got 2\. It applies to a spectrum, a power law and a model"):
        require_applicable("plan", "logs", {"noise": 2})


@pytest.mark.parametrize("source", ["nothing", "spectrum", "power law"])
def test_a_rate_above_the_highest_allowed_one_is_refused(source, tmp_path):
    with pytest.raises(ValueError, match=r"'lr' must be <= max_lr = 0.1, got 0.2"):
        ec.plan(*sources_of(source, tmp_path), total_steps=T, lr=0.2, max_lr=0.1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"nesterov": True}, "'nesterov' must be left out without momentum"),
        ({"nesterov": True, "momentum": 0.9, "optimizer": "adamw"}, "'nesterov' must be left out for Adam"),
        ({"momentum": 1.0}, "'momentum' must be < 1"),
        ({"momentum": -0.1}, "'momentum' must be >= 0"),
        ({"weight_decay": -1.0}, "'weight_decay' must be >= 0"),
        ({"batch_size": 0}, "'batch_size' must be >= 1"),
        ({"max_lr": 0.0}, "'max_lr' must be > 0"),
        ({"lr": 1e9}, "'lr' must be <= 1000 for sgd"),
        ({"lr": 20.0, "optimizer": "adam"}, "'lr' must be <= 10 for adam"),
    ],
)
@pytest.mark.parametrize("source", ["nothing", "logs"])
def test_settings_of_the_optimizer_are_checked_for_every_source(source, options, message, tmp_path):
    if source == "logs" and "lr" in options:
        pytest.skip("the forecast checks its rates")
    with pytest.raises(ValueError, match=message):
        ec.plan(*sources_of(source, tmp_path), total_steps=T, **options)


def test_noise_of_a_wrong_type_is_refused():
    with pytest.raises(TypeError, match="'noise' must be a number"):
        ec.plan(ec.PowerLaw(1.2, 1e-3, 1.0), total_steps=T, noise="5")
