import json

import numpy as np
import pytest

import eigencurve as ec
from eigencurve.planning.exports import csv_bytes, json_bytes


def test_every_rate_is_exact():
    schedule = ec.cosine(300, 0.1)
    head, *lines = csv_bytes(schedule).decode().splitlines()
    assert head == "step,lr"
    steps, rates = zip(*(line.split(",") for line in lines), strict=True)
    assert [int(step) for step in steps] == list(range(300))
    np.testing.assert_array_equal([float(rate) for rate in rates], schedule.values())
    assert ec.schedule_from_dict(json.loads(json_bytes(schedule.to_dict()))) == schedule


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_what_json_does_not_know_is_refused(number):
    with pytest.raises(ValueError, match="not JSON compliant"):
        json_bytes({"loss": number})
