import numpy as np
import pytest
from tests.paper.studies.noise_files import IMAGES, SCALE, TEXT, write_data
from tests.paper.studies.noise_results import measured, studied

import eigencurve as ec
from paper.engine.request import Request
from paper.studies import noise
from paper.studies.noise import noise_page
from paper.studies.noise_measuring import distance
from paper.studies.noise_training import END, MOMENTS

pytest.importorskip("matplotlib", reason="matplotlib is not installed")


def test_the_rows_are_the_moments_and_their_distance_to_the_end():
    page = noise_page(SCALE, [studied()])
    curves = {
        moment: np.log(ec.eigencurve(ec.spectrum.prepare(measured(moment).file.spectrum, 5e-4), 50, 1.0).values())
        for moment in MOMENTS
    }
    for moment in MOMENTS[:3]:
        gap = np.abs(curves[moment] - curves[END]).max()
        assert distance(measured(moment), measured(END), 5e-4, 50) == pytest.approx(gap)
        (row,) = [
            line
            for line in page.body.splitlines()
            if line.startswith(f"| {IMAGES.title} | {moment} | {MOMENTS.index(moment)} |")
        ]
        assert f"| {gap:.2f} |" in row
        assert "10 ± 1" in row  # tr(HC) = 100 over g.Hg = 10 ± 1
    assert list(page.figures) == [f"noise_{IMAGES.name}.png"]
    assert list(page.files) == [f"noise_{IMAGES.name}.npz"]
    assert [row["moment"] for row in page.values["networks"][0]["moments"]] == list(MOMENTS)


def test_the_prediction_is_that_of_the_quadratic():
    page, end = noise_page(SCALE, [studied()]), measured(END)
    p = ec.spectrum.prepare(end.file.spectrum, 5e-4)
    q = ec.NoisyQuadratic(p, noise=end.file.noise, initial_error=end.file.start)
    table = q.compare({"cosine": ec.cosine(50, 1 / p.L)}, tune_lr=True)
    ratio = table["cosine"].loss / q.search_best(50, q.stable_rate).loss
    assert f"| {IMAGES.title} | end | 0.5 | {ratio:.3f} |" in page.body


def test_the_page_says_whether_a_tenth_of_the_training_is_enough():
    gap = distance(measured("a tenth"), measured(END), 5e-4, 39_100)
    assert f"No.** The distances at T = 39,100 are: {IMAGES.title}: {gap:.2f}." in noise_page(SCALE, [studied()]).body


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
