import pytest

from eigencurve.planning.training import Training, training_of


def test_one_default_for_every_source_of_a_plan():
    """No momentum for SGD and the usual β₁ for Adam, both marked as assumed."""
    for optimizer, momentum in (("sgd", 0.0), ("adam", 0.9), ("adamw", 0.9)):
        found = training_of(optimizer)
        assert (found.momentum, found.weight_decay, found.nesterov) == (momentum, 0.0, False)
        assert found.sources == {"optimizer": "given", "momentum": "assumed", "weight_decay": "assumed"}


def test_what_is_given_is_kept():
    found = training_of("sgd", 0.9, True, 5e-4, 128)
    assert found == Training("sgd", 0.9, True, 5e-4, 128)
    assert found.assumed == []
    assert training_of("adamw", 0.0).momentum == 0.0


def test_the_optimizer_is_unknown_if_nothing_about_it_is_given():
    assert training_of(None) == Training()
    assert training_of(None, batch_size=4) == Training(batch_size=4)
    for settings in ({"momentum": 0.9}, {"weight_decay": 0.1}):
        assert training_of(None, **settings).sources["optimizer"] == "assumed"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("lion",), "'optimizer' must be one of"),
        (("sgd", 1.0), "'momentum' must be < 1"),
        (("sgd", -0.5), "'momentum' must be >= 0"),
        (("sgd", None, True), "'nesterov' must be left out without momentum, got True. Pass the momentum"),
        (("adam", 0.9, True), "'nesterov' must be left out for Adam"),
        (("sgd", None, False, -1.0), "'weight_decay' must be >= 0"),
        ((None, None, False, None, 0), "'batch_size' must be >= 1"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(ValueError, match=message):
        training_of(*settings)
