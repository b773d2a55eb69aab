import json

import pytest

import eigencurve as ec
from eigencurve.planning.result import Evidence, Plan, PlanInput, Training, training_of

BEST, OTHER = ec.wsd(100, 0.1, 20), ec.cosine(100, 0.1)


@pytest.fixture
def plan():
    rows = (
        ec.ComparisonRow("wsd_20", BEST, 2.5, 2.4, 2.6, 0.0, 0.0, 0.0, label="WSD"),
        ec.ComparisonRow("cosine_0", OTHER, excess=0.01, excess_low=-0.002, excess_high=0.02, label="cosine"),
    )
    return Plan(
        verdict="Use wsd. It is best. Really.",
        name="wsd_20",
        label="WSD",
        schedule=BEST,
        lr=0.1,
        lr_range=(0.05, 0.2),
        lr_limit="the limit of stability is 0.2",
        table=ec.ComparisonTable(rows, "wsd_20"),
        inputs=(PlanInput("steps", "100", "given"), PlanInput("noise", "1", "assumed", "linear would win")),
        evidence=Evidence("quadratic", "The least regret."),
        gap=0.1,
        warnings=("Measure it.",),
        training=Training("sgd"),
    )


def test_it_survives_json(plan):
    fields = json.loads(json.dumps(plan.to_dict()))
    assert ec.schedule_from_dict(fields["schedule"]) == plan.schedule
    assert fields["inputs"][1] == {"name": "noise", "value": "1", "source": "assumed", "effect": "linear would win"}
    assert [row["name"] for row in fields["table"]] == ["wsd_20", "cosine_0"]
    assert [ec.schedule_from_dict(row["schedule"]) for row in fields["table"]] == [BEST, OTHER]
    assert (fields["lr"], fields["lr_range"], fields["evidence"]["kind"]) == (0.1, [0.05, 0.2], "quadratic")
    assert fields["momentum"] == 0.0


def test_rows_by_name_a_short_repr_and_the_old_name_of_the_warnings(plan):
    assert plan["cosine_0"].excess == 0.01
    assert repr(plan) == "Plan(wsd_20, 100 steps, peak rate 0.1)"
    with pytest.warns(DeprecationWarning, match=r"use Plan\.warnings"):
        assert plan.notes == plan.warnings


@pytest.mark.parametrize(("optimizer", "momentum"), [("sgd", 0.0), ("adam", 0.9), ("adamw", 0.9)])
def test_one_default_for_every_source_of_a_plan(optimizer, momentum):
    training = training_of(optimizer)
    assert (training.momentum, training.weight_decay, training.nesterov) == (momentum, 0.0, False)
    assert training.sources == {"optimizer": "given", "momentum": "assumed", "weight_decay": "assumed"}


def test_given_settings_are_kept():
    training = training_of("sgd", 0.9, True, 5e-4, 128)
    assert training == Training("sgd", 0.9, True, 5e-4, 128)
    assert training.assumed == []
    assert [entry.value for entry in training.inputs()] == ["sgd", "0.9, Nesterov", "0.0005", "128"]


def test_the_optimizer_is_unknown_if_nothing_about_it_is_given():
    assert training_of(None) == Training()
    assert training_of(None, batch_size=4).inputs() == (PlanInput("batch size", "4", "given"),)
    for settings in ({"momentum": 0.9}, {"weight_decay": 0.1}):
        assert training_of(None, **settings).sources["optimizer"] == "assumed"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("lion",), "'optimizer' must be one of"),
        (("sgd", 1.0), "'momentum' must be < 1"),
        (("sgd", -0.5), "'momentum' must be >= 0"),
        (("sgd", None, True), "'nesterov' must be left out without momentum"),
        (("adam", 0.9, True), "'nesterov' must be left out for Adam"),
        (("sgd", None, False, -1.0), "'weight_decay' must be >= 0"),
        ((None, None, False, None, 0), "'batch_size' must be >= 1"),
    ],
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(ValueError, match=message):
        training_of(*settings)
