import json

import numpy as np
import pytest

from eigencurve.planning.nothing import RECOMMENDED, RELATIVE_LOSSES, USUAL_RATES, default_plan, usual_warmup

PUBLISHED_NAMES = {
    "wsd_40": "lin0.4", "wsd_60": "lin0.6", "wsd_90": "lin0.9", "wsd_20": "lin0.2", "cosine_0": "cos0",
    "cosine_10": "cos10", "constant": "stable",
}  # fmt: skip


def test_the_relative_losses_are_those_of_the_published_runs(data_path):
    index = json.loads(data_path("curves/index.json").read_text())
    for place, peak in enumerate((0.001, 0.0005)):
        finals = {}
        for entry in index:
            if entry["model"] == "llama_124m" and entry["peak_lr"] == peak:
                table = np.genfromtxt(data_path(f"curves/{entry['file']}"), delimiter=",", names=True)
                finals[entry["schedule"]] = table["loss"][np.argmax(table["step"])]
        for name, losses in RELATIVE_LOSSES.items():
            relative = finals[PUBLISHED_NAMES[name]] / finals["cos0"] - 1
            assert losses[place] == pytest.approx(relative, abs=6e-5)  # recorded with four digits


def test_it_recommends_to_hold_and_decay_late_to_zero():
    plan = default_plan(50_000, optimizer="adamw")
    rates = plan.schedule.values()
    assert (plan.name, len(rates)) == (RECOMMENDED, 50_000)
    assert rates[0] < 0.01 * rates.max()  # a warmup
    assert rates[25_000] == rates.max()
    assert rates[-1] < 0.001 * rates.max()
    assert plan["cosine_0"].excess > 0
    assert plan.table.rows[-1].name == "constant"
    assert plan.verdict.count(". ") == 2


def test_it_says_what_is_assumed_and_what_to_measure():
    plan = default_plan(50_000, optimizer="adamw")
    sources = {entry.name: entry.source for entry in plan.inputs}
    assert (sources["steps"], sources["peak rate"], sources["losses"]) == ("given", "assumed", "assumed")
    assert plan.evidence.kind == "published runs"
    assert "arXiv:2501.18965" in plan.evidence.sentence
    assert any("Log two short runs" in sentence for sentence in plan.warnings)
    assert plan.gap is None


def test_a_given_rate_and_warmup_are_used():
    plan = default_plan(1000, optimizer="adamw", lr=3e-4, warmup_steps=50)
    assert plan.lr == plan.schedule(50) == pytest.approx(3e-4)
    assert plan.schedule(49) < plan.schedule(50)
    assert {entry.name: entry.source for entry in plan.inputs}["peak rate"] == "given"


def test_the_evidence_is_not_about_sgd():
    assert any("from AdamW" in sentence for sentence in default_plan(1000).warnings)


def test_usual_warmups_and_rates():
    assert usual_warmup(50_000, "adamw") == 1000
    assert usual_warmup(1_000_000, "adam") == 2000
    assert usual_warmup(50_000, "sgd") == 0
    assert all(low < best < high for best, low, high in USUAL_RATES.values())


def test_all_options():
    plan = default_plan(1000, optimizer="sgd", max_lr=1e-9, batch_size=4, momentum=0.3, nesterov=True, weight_decay=7.0)
    assert plan.schedule.values().max() == plan.lr == plan.lr_range[1] == 1e-9
    values = {entry.name: (entry.value, entry.source) for entry in plan.inputs}
    assert values["momentum"] == ("0.3, Nesterov", "given")
    assert values["weight decay"] == ("7", "given")
    assert values["batch size"] == ("4", "given")
    assert values["highest rate"] == ("1e-09", "given")
