import json

import pytest

import eigencurve as ec
from eigencurve.planning.answer import Plan, PlanInput, PlanRow, RateRange, tail_sentence
from eigencurve.planning.training import Training


@pytest.fixture
def answer():
    best, other = ec.wsd(100, 0.1, 20), ec.cosine(100, 0.1)
    rows = (
        PlanRow("wsd", best, 2.5, 2.4, 2.6, 0.0, 0.0, 0.0),
        PlanRow("cosine", other, None, None, None, 0.01, -0.002, 0.02),
    )
    inputs = (PlanInput("steps", "100", "given"), PlanInput("noise", "1", "assumed", "linear would win"))
    rates = RateRange(0.1, 0.05, 0.2, "the limit of stability is 0.2")
    return Plan(
        "Use wsd. It is best. Really.", "wsd", best, rates, rows, inputs, 0.1, ("Measure it.",), Training("sgd")
    )


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (ec.constant(100, 0.1), "hold the rate to the end"),
        (ec.wsd(1000, 0.1, 150), "hold the rate for 85 % of the run and decay over the last 15 %"),
        (ec.linear(1000, 0.1), "decay from the beginning"),
        (ec.cosine(1000, 0.1, 0.01), "decay from the beginning to 10 % of the peak"),
    ],
)
def test_the_shape_in_words(schedule, words):
    assert _close(tail_sentence(schedule), words)


def _close(found, words):
    """Equal up to one percent point in each number."""
    numbers = [[int(w) for w in text.split() if w.isdigit()] for text in (found, words)]
    plain = ["".join(c for c in text if not c.isdigit()) for text in (found, words)]
    return plain[0] == plain[1] and all(abs(a - b) <= 1 for a, b in zip(*numbers, strict=True))


def test_it_prints_the_answer_first(answer):
    lines = str(answer).splitlines()
    assert lines[0] == "Use wsd. It is best. Really."
    assert "noise  assumed   1 (linear would win)" in str(answer)
    assert lines[-1] == "Note: Measure it."
    assert any(line.startswith("cosine") and "+1.00%" in line and "-0.20% to +2.00%" in line for line in lines)


def test_it_survives_json(answer):
    fields = json.loads(json.dumps(answer.to_dict()))
    assert ec.schedule_from_dict(fields["schedule"]) == answer.schedule
    assert fields["inputs"][1] == {"name": "noise", "value": "1", "source": "assumed", "effect": "linear would win"}
    assert [row["name"] for row in fields["table"]] == ["wsd", "cosine"]
    assert fields["rates"]["best"] == 0.1


def test_rows_by_name_and_a_short_repr(answer):
    assert answer["cosine"].behind == 0.01
    assert repr(answer) == "Plan(wsd, 100 steps, peak rate 0.1)"
