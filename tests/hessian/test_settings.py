import dataclasses
import inspect

import numpy as np
import pytest
from tests.hessian.matrices import matrix_operator

from eigencurve.adapters.measuring import Measurement
from eigencurve.hessian import estimate_spectrum, plan_memory
from eigencurve.hessian.curvature import CurvatureOperator, OperatorOptions
from eigencurve.hessian.settings import EstimateSettings


def defaults(function):
    return {name: p.default for name, p in inspect.signature(function).parameters.items() if p.default is not p.empty}


def test_the_public_function_has_the_defaults_of_the_settings():
    settings = {field.name: field.default for field in dataclasses.fields(EstimateSettings)}
    assert {**defaults(estimate_spectrum), "function": "estimate_spectrum"} == settings


def test_the_operators_options_are_those_of_the_constructor():
    assert set(OperatorOptions.__annotations__) == set(defaults(CurvatureOperator.__init__))


def test_settings_are_plain_numbers_and_frozen():
    settings = EstimateSettings(num_products=np.int64(5), settle=np.float32(0.5))
    assert (type(settings.num_products), type(settings.settle)) == (int, float)
    with pytest.raises(dataclasses.FrozenInstanceError):
        settings.num_products = 3


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"num_products": 0}, "'num_products' must be >= 1"),
        ({"num_probes": 0}, "'num_probes' must be >= 1"),
        ({"seed": -1}, "'seed' must be >= 0"),
        ({"settle": 0.0}, "'settle' must be > 0"),
        ({"weight_decay": 0.0}, "'weight_decay' must be > 0"),
        ({"total_steps": 0}, "'total_steps' must be >= 1"),
        ({"checkpoint": "no/such/folder/run.npz"}, "a folder that exists"),
    ],
)
def test_bad_settings_are_refused_when_they_are_made(settings, match):
    with pytest.raises(ValueError, match=f"estimate_spectrum: .*{match}" if "folder" in match else match):
        EstimateSettings(**settings)


def test_too_small_a_budget_is_refused_by_the_estimate():
    with pytest.raises(ValueError, match="'memory_budget' must be >="):
        estimate_spectrum(matrix_operator(), memory_budget=100)


def test_only_the_operator_and_the_steps_are_positional():
    with pytest.raises(TypeError, match="positional"):
        estimate_spectrum(matrix_operator(), 20, 1)


@pytest.mark.parametrize(
    "measure",
    [
        lambda **given: estimate_spectrum(matrix_operator(), settle=None, progress=False, **given).plan.num_products,
        lambda **given: plan_memory(100, **given).num_products,
        lambda **given: Measurement(0.1, 5e-4, **given).settings.num_products,
    ],
)
def test_the_old_name_of_the_number_of_products_works_with_a_warning(measure):
    with pytest.warns(DeprecationWarning, match="'num_steps' will go .* use 'num_products'") as warned:
        assert measure(num_steps=7) == measure(num_products=7) == 7
    assert warned[0].filename == __file__
