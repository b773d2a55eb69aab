import dataclasses

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigencurve.planning.loss_view import SCALES
from eigencurve.studio.state import (
    AXES,
    KINDS,
    MOST_SCHEDULES,
    MOST_STEPS,
    SOURCES,
    Settings,
    from_params,
    to_params,
)


@st.composite
def any_settings(draw):
    lr = draw(st.floats(1e-12, 1e6))
    epochs = draw(st.integers(1, 1000))
    momentum = draw(st.sampled_from([0.0, 0.9, 0.123]))
    return Settings(
        source=draw(st.sampled_from(SOURCES)),
        alpha=draw(st.floats(-1, 4)),
        kappa=draw(st.floats(1.001, 1e15)),
        weight_decay=draw(st.floats(1e-12, 1e3)),
        epochs=epochs,
        steps_per_epoch=draw(st.integers(1, MOST_STEPS // epochs)),
        lr=lr,
        min_lr=draw(st.one_of(st.none(), st.floats(0, lr))),
        beta=draw(st.floats(1, 1e6)),
        allocation=draw(st.sampled_from(["sqrt", "optimal"])),
        noise=draw(st.one_of(st.none(), st.floats(0, 1e12))),
        momentum=momentum,
        nesterov=momentum > 0 and draw(st.booleans()),
        scale=draw(st.sampled_from(SCALES)),
        schedules=tuple(draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=MOST_SCHEDULES, unique=True))),
        best=draw(st.booleans()),
        axis=draw(st.sampled_from(AXES)),
        framework=draw(st.sampled_from(["torch", "optax"])),
    )


@given(settings=any_settings())
def test_the_address_restores_every_setting(settings):
    params = to_params(settings)
    assert all(isinstance(value, str) for value in params.values())
    assert from_params(params) == (settings, ())


def test_the_address_of_the_defaults_is_empty():
    assert to_params(Settings()) == {}
    assert from_params({}) == (Settings(), ())


BAD = {
    "source": "elsewhere",
    "zoo": "none_such",
    "alpha": "nan",
    "kappa": "1",
    "weight_decay": "-1",
    "epochs": "1.5",
    "steps_per_epoch": "0",
    "lr": "fast",
    "min_lr": "inf",
    "beta": "0.9",
    "allocation": "even",
    "noise": "-0.1",
    "momentum": "1",
    "nesterov": "yes",
    "scale": "large",
    "schedules": "cosine,cosine",
    "best": "yes",
    "axis": "cubic",
    "framework": "caffe",
}


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Settings)])
def test_a_bad_value_has_a_message_and_the_default(name):
    settings, messages = from_params({name: BAD[name], "noise" if name != "noise" else "beta": "3"})
    assert getattr(settings, name) == getattr(Settings(), name)
    assert settings.noise == 3 or settings.beta == 3
    assert len(messages) == 1
    assert f"'{name}' must be" in messages[0]
    assert messages[0].endswith("The default is used.")


@pytest.mark.parametrize("text", ["", ",", "cosine,spiral", ",".join(KINDS)])
def test_bad_lists_of_schedules(text):
    settings, messages = from_params({"schedules": text})
    assert settings == Settings()
    assert "'schedules' must be" in messages[0]


def test_an_unknown_parameter_is_named():
    settings, messages = from_params({"colour": "red"})
    assert settings == Settings()
    assert messages == ("studio: there is no setting 'colour'. It is ignored.",)


def test_a_long_value_is_cut_in_its_message():
    _, messages = from_params({"lr": "9" * 5000 + "x"})
    assert len(messages[0]) < 300


@pytest.mark.parametrize(
    ("params", "reset", "message"),
    [
        ({"epochs": "10000", "steps_per_epoch": "10000"}, ("epochs", "steps_per_epoch"), "10,000,000 steps in all"),
        ({"lr": "0.01", "min_lr": "0.02"}, ("lr", "min_lr"), r"<= lr = 0.01"),
        ({"source": "power_law", "weight_decay": "0"}, ("weight_decay",), "> 0 for a power law"),
        ({"nesterov": "1"}, ("momentum", "nesterov"), "'momentum' must be > 0 with nesterov=1"),
    ],
)
def test_two_that_do_not_go_together(params, reset, message):
    settings, messages = from_params(params)
    for name in reset:
        assert getattr(settings, name) == getattr(Settings(), name)
    assert len(messages) == 1
    assert message in messages[0]
    assert messages[0].endswith("The defaults are used.")


def test_settings_are_checked_when_made():
    with pytest.raises(ValueError, match=r"studio: 'min_lr' must be <= lr = 0\.1, got 0\.2"):
        Settings(min_lr=0.2)
    with pytest.raises(TypeError, match=r"studio: 'epochs' must be an integer, got 1\.5"):
        Settings(epochs=1.5)
    with pytest.raises(TypeError, match="studio: 'best' must be 0 or 1, got 'yes'"):
        Settings(best="yes")
    with pytest.raises(ValueError, match="studio: 'schedules' must be 1 to 8 different kinds, got ''"):
        Settings(schedules=())


def test_total_steps():
    assert Settings(epochs=3, steps_per_epoch=7).total_steps == 21
