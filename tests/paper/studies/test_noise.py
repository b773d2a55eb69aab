import pytest
from tests.paper.studies.noise_files import IMAGES, SCALE, TEXT, write_data

from paper.engine.request import Request
from paper.studies import noise

pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def test_the_study_runs_and_resumes(tmp_path, monkeypatch):
    monkeypatch.setattr(noise, "noise_scale", lambda _name: SCALE)
    request = Request(store_path=tmp_path / "runs.sqlite", data=write_data(tmp_path / "data"), scale="smoke")
    page = noise.make(request)
    assert f"## {TEXT.title}, in AdamW's metric" in page.body
    assert f"## {IMAGES.title}" in page.body
    assert len(page.figures) == len(page.files) == 3
    kept = sorted(request.checkpoints.rglob("*.npz"))
    kept[0].unlink()

    def only_the_missing_one(*arguments):
        assert arguments[5] == kept[0]
        measured.append(arguments[5])
        return original(*arguments)

    measured, original = [], noise.measure
    monkeypatch.setattr(noise, "measure", only_the_missing_one)
    assert noise.make(request).body == page.body
    assert measured == [kept[0]]
