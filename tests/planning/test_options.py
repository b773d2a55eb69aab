"""Every option of ``plan`` with every kind of source: it changes the answer or is recorded in it, or it is refused."""

import inspect

import numpy as np
import pytest
from tests.planning.logged import runs, write_logs
from tests.spectrum.test_measurement import record
from tests.spectrum.test_noise import noise

import eigencurve as ec
from eigencurve.forecast import fit_runs
from eigencurve.hessian import estimate_spectrum
from eigencurve.planning.plan import APPLIES, KINDS, kind_of, require_applicable

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


def test_all_six_options_of_a_plan_from_nothing():
    with pytest.raises(ValueError, match=r"'noise' must be left out without a source, got 5\.0\. It applies to"):
        ec.plan(total_steps=1000, optimizer="sgd", noise=5.0)
    plan = ec.plan(
        total_steps=1000, optimizer="sgd", max_lr=1e-9, batch_size=4, momentum=0.3, nesterov=True, weight_decay=7.0
    )
    assert plan.schedule.values().max() == plan.rates.best == plan.rates.high == 1e-9
    values = {known.name: (known.value, known.source) for known in plan.inputs}
    assert values["momentum"] == ("0.3, Nesterov", "given")
    assert values["weight decay"] == ("7", "given")
    assert values["batch size"] == ("4", "given")
    assert values["highest rate"] == ("1e-09", "given")


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


def test_require_applicable_names_the_option_and_where_it_applies():
    require_applicable("plan", "nothing", {"momentum": 0.9, "noise": None, "nesterov": False})
    with pytest.raises(ValueError, match=r"got 2\. It applies to a spectrum, a power law and a model"):
        require_applicable("plan", "logs", {"noise": 2})
