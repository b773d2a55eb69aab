import numpy as np
import pytest
from tests.paper import running
from tests.paper.images.pages import made, run

from paper.images import paper
from paper.images.imagenet_tables import ALPHAS, SCALES


@pytest.fixture
def imagenet(tmp_path):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    rng = np.random.default_rng(0)
    for part, count in (("train", 6), ("val", 3)):
        for kind in ("n01440764", "n02102040"):
            (tmp_path / part / kind).mkdir(parents=True)
            for i in range(count):
                pixels = rng.integers(0, 256, (40, 50, 3), dtype=np.uint8)
                image.fromarray(pixels).save(tmp_path / part / kind / f"{i}.JPEG")
    return tmp_path


def test_imagenet_elastic(imagenet):
    page, values = made(imagenet, "imagenet-elastic")
    (rows,) = values["sections"].values()
    names = ["Step Decay [30-60]", "Step Decay [30-60-80]", "Cosine Decay", "Elastic Step Decay"]
    assert [row["schedule"] for row in rows] == names
    assert [row["settings"].get("milestones") for row in rows[:2]] == [[1, 2], [1, 2, 3]]
    assert [row["validation"] is None for row in rows] == [True, True, True, False]  # only r is searched
    assert "top-5 accuracy" in page


def test_imagenet_cosine_power(imagenet):
    page, values = made(imagenet, "imagenet-cosine-power")
    assert list(values["sections"]) == ["ResNet-18, 1 epoch", "ResNet-18, 2 epochs"]
    for rows, count in zip(values["sections"].values(), (2, 1), strict=True):  # long runs have one trial
        assert [row["settings"]["alpha"] for row in rows] == [0.5, 1.0, 2.0]
        assert all(len(row["trials"]["top5"]) + row["diverged"] == count for row in rows)
    assert "Best by accuracy: " in page


def test_missing_data_and_unknown_scales_are_said(tmp_path, monkeypatch):
    monkeypatch.delenv("EIGENCURVE_DATA", raising=False)
    words = ("imagenet-elastic", "--store", str(tmp_path / "s.sqlite"))
    result = run(*words)
    assert result.exit_code == 2
    assert "the folder that holds ImageNet's train/ and val/" in result.stderr
    unknown = running.run(*words, "--scale", "huge")
    assert unknown.exit_code == 2
    assert "'scale' must be one of 'paper', 'laptop', 'smoke', got 'huge'" in unknown.stderr


def test_the_papers_scale_has_the_papers_budgets_and_powers():
    assert set(SCALES["paper"].power_epochs) == set(paper.COSINE_POWER)
    assert all(tuple(rows) == ALPHAS for rows in paper.COSINE_POWER.values())
    assert SCALES["paper"].elastic_epochs == 90
