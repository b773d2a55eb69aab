import pytest

import eigencurve as ec
from eigencurve.schedules.by_kind import FACTORIES, own_settings, schedule_of_kind, settings_of, usual_settings
from eigencurve.schedules.eigencurve import curve_of

LAW = ec.PowerLaw(1.5, 1e-3, 10.0)


def test_every_kind_is_the_public_function_of_its_name():
    for kind, factory in FACTORIES.items():
        assert getattr(ec, kind) is factory or (kind == "eigencurve" and factory is curve_of)


def test_warmup_counts_in_the_run():
    f = schedule_of_kind("cosine", 100, 0.1, warmup_steps=10, min_lr=0.01)
    assert f == ec.warmup(ec.cosine(90, 0.1, 0.01), 10)
    assert schedule_of_kind("rex", 100, 0.1, warmup_steps=10, warmup_shape="cosine") == ec.warmup(
        ec.rex(90, 0.1), 10, shape="cosine"
    )
    wsd = schedule_of_kind("wsd", 100, 0.1, warmup_steps=10, decay_steps=20)
    assert wsd.values() == pytest.approx(ec.wsd(100, 0.1, decay_steps=20, warmup_steps=10).values())


def test_eigencurve_is_made_from_the_spectrum():
    assert schedule_of_kind("eigencurve", 50, 0.1, LAW, beta=1.5) == ec.eigencurve(LAW, 50, 0.1, beta=1.5)
    assert settings_of("eigencurve") == {"min_lr": False, "beta": False, "allocation": False, "rounding": False}
    assert settings_of("exponential") == {"min_lr": True}


def test_own_settings_are_those_that_the_kind_takes():
    every = {"min_lr": 0.01, "beta": None, "allocation": "sqrt", "alpha": 2.0, "r": 0.5, "epochs": 3}
    assert own_settings("eigencurve", every) == {"min_lr": 0.01, "allocation": "sqrt"}
    assert own_settings("elastic_step", every) == {"r": 0.5}
    assert own_settings("constant", every) == {}
    with pytest.raises(ValueError, match="'kind' must be one of"):
        own_settings("cosin", every)


@pytest.mark.parametrize("kind", FACTORIES)
@pytest.mark.parametrize("total_steps", [1, 4, 1000])
def test_usual_settings_complete_every_kind_that_has_them(kind, total_steps):
    usual = usual_settings(kind, 0.1)
    required = {name for name, needed in settings_of(kind).items() if needed}
    assert set(usual) == (set() if kind in ("multistep", "hold_then_decay") else required)
    if set(usual) == required:
        assert schedule_of_kind(kind, total_steps, 0.1, LAW, **usual).total_steps == total_steps


@pytest.mark.parametrize(
    ("kind", "settings", "message"),
    [
        ("cosin", {}, "'kind' must be one of 'eigencurve'"),
        ("cosine", {"alpha": 1.0}, "'alpha' must be left out for kind 'cosine'"),
        ("multistep", {}, "'milestones' must be given for kind 'multistep'"),
        ("eigencurve", {}, "'spectrum' must be given"),
        ("cosine", {"warmup_steps": 50}, "'warmup_steps' must be < 'total_steps' = 50"),
        ("cosine", {"warmup_steps": -1}, "'warmup_steps' must be >= 0"),
    ],
)
def test_wrong_settings_are_refused(kind, settings, message):
    with pytest.raises(ValueError, match=message):
        schedule_of_kind(kind, 50, 0.1, **settings)
