import pytest
from tests.spectrum.test_noise import noise
from tests.spectrum.test_start import START
from tests.studio.drawn import losses_of
from tests.studio.opened import UNMEASURED, losses, opened, settings_of

from eigencurve.spectrum import source
from eigencurve.spectrum.files import SpectrumFile
from eigencurve.spectrum.source import ASSUMED_NOISE
from eigencurve.studio import texts
from eigencurve.studio.controls import SLIDER_VALUES
from eigencurve.studio.state import Settings, to_params


def messages(page):
    """The warnings about the address."""
    return [warning.value for warning in page.warning if warning.value.startswith("studio")]


def test_a_moved_slider_shows_the_librarys_numbers():
    page = opened(zoo=UNMEASURED)
    page.select_slider(key="set_noise").set_value(0.0).run()
    page.select_slider(key="set_beta").set_value(1.0).run()
    assert not page.exception
    settings = Settings(zoo=UNMEASURED, epochs=10, steps_per_epoch=50, noise=0.0, beta=1.0)
    assert losses(page) == losses_of(settings)
    assert settings_of(page) == to_params(settings)


def test_the_address_restores_every_setting():
    settings = Settings(
        source="power_law", alpha=0.7, kappa=12345.0, weight_decay=0.003, epochs=3, steps_per_epoch=70, lr=0.03,
        min_lr=0.0007, beta=1.000005, allocation="optimal", noise=33.0, momentum=0.7, nesterov=True, scale="given",
        schedules=("linear", "eigencurve", "wsd"), axis="log", framework="optax",
    )  # fmt: skip
    page = opened(**to_params(settings))
    assert not page.exception
    assert not messages(page)
    assert losses(page) == losses_of(settings)
    assert settings_of(page) == to_params(settings)
    assert page.radio(key="set_framework").value == "optax"
    assert page.number_input(key="set_min_lr").value == 0.0007
    page.radio(key="set_axis").set_value("linear").run()
    assert settings_of(page) == {k: v for k, v in to_params(settings).items() if k != "axis"}


@pytest.fixture
def measured_zoo(monkeypatch):
    """The zoo with the same measured noise, and a start, for every spectrum; the first one lacks the noise."""
    read = source.zoo_file

    def file(name):
        return SpectrumFile(read(name).spectrum, None, None if name == "resnet20_cifar10" else noise(), START)

    monkeypatch.setattr(source, "zoo_file", file)
    source._zoo_file.cache_clear()
    yield
    source._zoo_file.cache_clear()


@pytest.mark.usefixtures("measured_zoo")
def test_measured_noise_is_offered_with_an_override():
    name = "vgg16_cifar10_narrow8"
    page = opened(zoo=name)
    chosen = page.radio(key="set_noise_choice")
    assert (chosen.value, chosen.options) == ("measured (0.9)", ["measured (0.9)", "your own"])
    assert "Noise: measured, σ² = 0.9 (B = 4, γ = 1.10)" in [caption.value for caption in page.caption]
    assert losses(page) == losses_of(Settings(zoo=name, epochs=10, steps_per_epoch=50))
    chosen.set_value("your own").run()
    assert page.select_slider(key="set_noise").value == 1.0
    page.select_slider(key="set_noise").set_value(20.0).run()
    assert not page.exception
    settings = Settings(zoo=name, epochs=10, steps_per_epoch=50, noise=20.0)
    assert losses(page) == losses_of(settings)
    assert settings_of(page) == to_params(settings)
    assert "Noise: given, σ² = 20" in [caption.value for caption in page.caption]
    again = opened(**to_params(settings))
    assert again.radio(key="set_noise_choice").value == "your own"
    assert losses(again) == losses(page)
    page.radio(key="set_noise_choice").set_value("measured (0.9)").run()
    assert settings_of(page) == to_params(Settings(zoo=name, epochs=10, steps_per_epoch=50))


@pytest.mark.usefixtures("measured_zoo")
def test_next_to_a_measured_start_the_noise_is_assumed_in_its_units():
    page = opened()
    assert page.radio(key="set_noise_choice").value == "assumed"
    assert any(caption.value.startswith("Noise: assumed, σ² = ") for caption in page.caption)
    assert "Start: measured, excess loss 5 (from the gradient)" in [caption.value for caption in page.caption]


def test_momentum_is_none_or_nine_tenths_or_any_other():
    page = opened()
    assert page.radio(key="set_momentum_choice").value == "0"
    assert "momentum" not in page.code[-1].value
    page.radio(key="set_momentum_choice").set_value("0.9").run()
    settings = Settings(epochs=10, steps_per_epoch=50, momentum=0.9)
    assert losses(page) == losses_of(settings)
    assert settings_of(page) == to_params(settings)
    page.toggle(key="set_nesterov").set_value(True).run()
    page.radio(key="set_momentum_choice").set_value("other").run()
    page.number_input(key="set_momentum").set_value(0.5).run()
    assert not page.exception
    settings = Settings(epochs=10, steps_per_epoch=50, momentum=0.5, nesterov=True)
    assert losses(page) == losses_of(settings)
    assert settings_of(page) == to_params(settings)
    assert "momentum=0.5, nesterov=True" in page.code[-1].value
    page.radio(key="set_momentum_choice").set_value("0").run()
    assert settings_of(page) == to_params(Settings(epochs=10, steps_per_epoch=50))


def test_a_bad_address_has_messages_and_defaults():
    page = opened(lr="![x](http://example.org/x.png)", noise="1e99", colour="red")
    assert not page.exception
    assert len(messages(page)) == 3
    assert "![x]" not in "".join(messages(page))  # what the address says is text, not an image
    assert losses(page) == losses_of(Settings(epochs=10, steps_per_epoch=50))
    page.select_slider(key="set_beta").set_value(1.0).run()
    assert not messages(page)


def test_settings_that_contradict_each_other_have_an_error():
    page = opened()
    page.checkbox(key="set_free").uncheck().run()
    page.number_input(key="set_min_lr").set_value(0.5).run()
    assert not page.exception
    assert "min\\_lr" in page.error[0].value
    page.number_input(key="set_min_lr").set_value(0.05).run()
    assert not page.error
    assert losses(page) == losses_of(Settings(epochs=10, steps_per_epoch=50, min_lr=0.05))


def test_a_hidden_slider_keeps_its_value():
    page = opened(source="power_law", alpha="0.65")
    page.selectbox(key="set_source").set_value("zoo").run()
    assert page.selectbox(key="set_zoo").value == "resnet20_cifar10"
    page.selectbox(key="set_source").set_value("power_law").run()
    assert page.slider(key="set_alpha").value == 0.65


def test_without_a_chosen_schedule_eigencurve_is_shown():
    page = opened()
    page.multiselect(key="set_schedules").set_value([]).run()
    assert not page.exception
    assert texts.NO_SCHEDULE in [caption.value for caption in page.caption]
    assert list(losses(page)) == ["Eigencurve"]


@pytest.mark.parametrize("name", SLIDER_VALUES)
def test_every_value_of_a_slider_is_a_setting(name):
    values = SLIDER_VALUES[name]
    assert list(values) == sorted(set(values))
    assert (ASSUMED_NOISE if name == "noise" else getattr(Settings(), name)) in values
    for value in values:
        assert getattr(Settings(**{name: value}), name) == value
