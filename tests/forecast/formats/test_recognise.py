import json

import pytest
from tests.reference.events import event, event_file, scalar

import eigencurve as ec
from eigencurve.forecast.formats.recognise import is_log

ENTRY = {"step": 1, "loss": 2.0}
LOGS = {
    "csv": b"step,lr,loss\n0,0.1,3\n",
    "semicolons": b"epoch;train_loss\n1;2,5\n",
    "mark": b"\xef\xbb\xbfstep,loss\n",
    "export": b'"Step","a - train/loss","a - train/loss__MIN"\n',
    "lines": json.dumps(ENTRY).encode() + b"\n" + json.dumps(ENTRY).encode(),
    "list": json.dumps([ENTRY], indent=2).encode(),
    "trainer state": json.dumps({"best_metric": None, "log_history": [ENTRY]}, indent=2).encode(),
    "cut": json.dumps({"log_history": [ENTRY]})[:-5].encode(),
    "events": event_file(event(1, scalar("loss", 2.0))),
}


@pytest.mark.parametrize("suffix", [".csv", ".txt", ".json", ".npz", ""])
@pytest.mark.parametrize("content", LOGS.values(), ids=LOGS)
def test_a_log_under_any_name(tmp_path, content, suffix):
    path = tmp_path / f"file{suffix}"
    path.write_bytes(content)
    assert is_log(path)


@pytest.mark.parametrize("kind", [".npz", ".json", ".txt"])
@pytest.mark.parametrize("name", ["file.npz", "file.json", "file.txt", "file.csv", "trainer_state.json"])
def test_a_spectrum_under_any_name(tmp_path, kind, name):
    ec.save_spectrum(ec.Spectrum([0.01, 0.1, 1.0], [5, 3, 1]), tmp_path / f"x{kind}")
    path = (tmp_path / f"x{kind}").rename(tmp_path / name)
    assert not is_log(path)


def test_the_name_decides_what_the_content_leaves_open(tmp_path):
    for name, expected in (("empty.csv", True), ("empty.json", False), ("events.out.tfevents.1", True)):
        (tmp_path / name).write_bytes(b"")
        assert is_log(tmp_path / name) == expected
    assert is_log(tmp_path / "missing.csv")
    assert not is_log(tmp_path / "missing.npz")
    assert is_log(tmp_path)
