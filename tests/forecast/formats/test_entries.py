import json
from pathlib import Path

import pytest

from eigencurve.forecast.formats.entries import read_entries

PATH = Path("log.json")
ENTRIES = [
    {"epoch": 0.1, "step": 10, "loss": 3.5, "learning_rate": 1e-3, "grad_norm": 1.0},
    {"epoch": 0.1, "step": 10, "eval_loss": 3.25, "eval_runtime": 1.0},
    {"epoch": 0.2, "step": 20, "loss": 3.0, "learning_rate": 5e-4, "grad_norm": None},
    {"epoch": 0.2, "step": 20, "train_loss": 3.25, "train_runtime": 10.0},
]


def read(text, keep=lambda _name: True):
    return read_entries(PATH, text, keep)


@pytest.mark.parametrize(
    ("text", "delay"),
    [
        (json.dumps({"global_step": 20, "log_history": ENTRIES}), 1),
        (json.dumps(ENTRIES, indent=2), 0),
        ("\n".join(map(json.dumps, ENTRIES)) + "\n\n", 0),
    ],
    ids=["trainer state", "list", "lines"],
)
def test_the_three_layouts(text, delay):
    log = read(text)
    assert log.columns["loss"].steps.tolist() == [10, 20]
    assert log.columns["loss"].values.tolist() == [3.5, 3.0]
    assert log.columns["loss"].rows.tolist() == [1, 3]
    assert log.columns["eval_loss"].values.tolist() == [3.25]
    assert log.columns["grad_norm"].values.tolist() == [1.0]
    assert "train_loss" not in log.columns, "the summary is no entry"
    assert (log.row, log.rate_delay) == ("entry", delay)


def test_one_line_is_one_entry():
    assert read(json.dumps(ENTRIES[0])).columns["loss"].values.tolist() == [3.5]


def test_names_are_those_of_all_entries():
    names = ["epoch", "step", "loss", "learning_rate", "grad_norm", "eval_loss", "eval_runtime"]
    assert list(read(json.dumps(ENTRIES), lambda name: name == "loss").names) == names


def test_a_number_may_be_a_text():
    log = read('[{"step": 1, "loss": NaN}, {"step": 2, "loss": "NaN"}, {"step": "3", "loss": "2.5"}]')
    assert str(log.columns["loss"].values.tolist()) == "[nan, nan, 2.5]"


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ('{"step": 1', r"the JSON is damaged at line 1"),
        ('{"step": 1}\n{"step": 2\n', r"line 2 is not JSON"),
        ("[1, 2]", r"the JSON holds no list of log entries"),
        ('{"log_history": 3}', r"the JSON holds no list of log entries"),
        ('{"a": 1}\n3\n', r"the JSON holds no list of log entries"),
        ('[{"loss": 3}]', r"entry 1 has no step; its names are 'loss'"),
        ('[{"step": "x", "loss": 3}]', r"the step of entry 1 must be a whole number, got 'x'"),
        ('[{"step": 1, "loss": [3]}]', r"entry 1, 'loss': '\[3\]' is not a number"),
        ('[{"step": 1, "loss": true}]', r"'True' is not a number"),
        ('[{"step": 1, "loss": 1%s}]' % ("0" * 400), r"is not a number"),
        ('[{"step": 1, "loss": 1%s}]' % ("0" * 10_000), r"the JSON cannot be read"),
        ("[" * 100_000, r"the JSON (cannot be read|is damaged)"),
    ],
)
def test_a_bad_file_is_one_clear_line(text, match):
    with pytest.raises(ValueError, match=match) as caught:
        read(text)
    assert str(caught.value).startswith("load_run: log.json: ")
    assert "\n" not in str(caught.value)
