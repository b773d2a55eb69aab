import dataclasses
import json
import math

import numpy as np
import pytest

import eigencurve as ec
from eigencurve.spectrum.files import load_measurement
from eigencurve.spectrum.measurement import MeasurementRecord
from eigencurve.spectrum.octaves import Octaves

S = ec.Spectrum([-0.1, 0.2, 3.0], [1, 6, 3], dim=10)


def shares(index, lower, share, error):
    return Octaves("share", np.array(index), np.array(lower), np.array(share), np.array(error), 5e-4)


def record(**changes):
    octaves = shares([0, 1, 4], [0.1, 0.2, 1.6], [0.1, 0.6, 0.3], [0.01, 0.01, 0.01])
    made = MeasurementRecord(
        octaves, np.array([-0.1, 0.2, 3.0, 0.3, 2.9]), np.array([0.1, 0.6, 0.3, 0.5, 0.5]),
        (np.array([1.0, 2.0, 3.0]), np.array([4.0, 5.0])), (np.array([0.1, 0.2, 0.3]), np.array([0.4, 0.5])),
        num_products=5, num_distinct=4, reason="settled", schedule_change=0.015, total_steps=39_100,
        seconds=1.5, made_by="a test",
    )  # fmt: skip
    return dataclasses.replace(made, **changes)


def test_both_errors_are_in_the_text():
    """The error along one probe, and the error across probes: predicted, and measured if there are several."""
    made = record(error_between_probes=0.0212, distance_between_probes=0.0345, counted=np.array([3.0]))
    assert made.errors == "along one probe 1.50%, across probes 2.12%"
    assert repr(made) == f"MeasurementRecord(5 products, 2 probes, settled, 1 counted; {made.errors})"
    assert "another 2 probes would change the schedule by about 2.12%; single probes differ by up to 3.45%" in str(made)
    one = record(error_between_probes=0.0212, alphas=made.alphas[:1], betas=made.betas[:1])
    assert "another probe would change the schedule by about 2.12%\n" in str(one)
    assert repr(one) == "MeasurementRecord(5 products, settled; along one probe 1.50%, across probes 2.12%)"
    assert record(schedule_change=math.inf).errors == "along one probe unknown, across probes unknown"


def test_files_of_version_0_1_load(tmp_path):
    path = tmp_path / "s.json"
    ec.save_spectrum(
        S,
        path,
        record(error_between_probes=0.1, distance_between_probes=0.2, preconditioner="AdamW", counted=np.array([3.0])),
    )
    fields = json.loads(path.read_text())
    for name in ("counted", "across", "between", "preconditioner"):
        del fields["measurement"][name]
    path.write_text(json.dumps(fields))
    known = load_measurement(path)
    assert (len(known.counted), math.isnan(known.error_between_probes), known.preconditioner) == (0, True, "")
    assert math.isnan(known.distance_between_probes)
    assert "metric" not in str(known)


def test_the_metric_and_both_errors_are_printed():
    shown = str(record(error_between_probes=0.013, preconditioner="AdamW")).splitlines()
    assert shown[0] == "in the metric of AdamW: P^(-1/2) H P^(-1/2)"
    assert "changed by 1.50%" in shown[2]  # along one probe
    assert "another 2 probes would change the schedule by about 1.30%" in shown[3]


@pytest.mark.parametrize("moved", [0.41, math.inf])
def test_an_unsettled_file_is_loaded_with_a_warning(moved, tmp_path):
    ec.save_spectrum(S, tmp_path / "s.npz", record(reason="num_steps", schedule_change=moved))
    expected = r"still moved by 41 %\): measure it with more steps" if moved < 1 else "too few to tell"
    with pytest.warns(UserWarning, match=f"load_spectrum: .*s.npz: The spectrum has not settled.*{expected}"):
        assert ec.load_spectrum(tmp_path / "s.npz") == S


def test_a_settled_file_is_loaded_without_one(tmp_path):
    """Warnings are errors in the tests. A run of all its steps may have settled as well."""
    for name, changes in {
        "a": {},
        "b": {"reason": "num_steps", "schedule_change": 0.04},
        "c": {"reason": "exact"},
    }.items():
        ec.save_spectrum(S, tmp_path / f"{name}.npz", record(**changes))
        assert ec.load_spectrum(tmp_path / f"{name}.npz") == S


@pytest.mark.parametrize(
    ("old", "new"),
    [("moved", "schedule_change"), ("across", "error_between_probes"), ("between", "distance_between_probes")],
)
def test_old_names_still_work_with_a_warning(old, new):
    made = record(error_between_probes=0.02, distance_between_probes=0.03)
    with pytest.warns(DeprecationWarning, match=new):
        assert getattr(made, old) == getattr(made, new)
