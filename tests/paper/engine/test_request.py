from pathlib import Path

import pytest

from paper.engine.request import Request, Workers


@pytest.mark.parametrize(
    ("settings", "match"),
    [
        ({"backend": "threads"}, "'backend' must be one of 'loky', 'sequential', 'ray'"),
        ({"count": 0}, r"'count' must be >= 1, got 0. Pass -1 for all cores"),
        ({"address": "auto"}, "'address' must be left out unless backend='ray'"),
    ],
)
def test_refuses_bad_workers(settings, match):
    with pytest.raises(ValueError, match=match):
        Workers(**settings)


def test_files_appear_on_first_use_only(tmp_path):
    request = Request(tmp_path / "runs.sqlite")
    assert list(tmp_path.iterdir()) == []
    assert request.store is request.store
    assert request.checkpoints == tmp_path / "runs.checkpoints"
    assert {path.name for path in tmp_path.iterdir()} >= {"runs.sqlite", "runs.checkpoints"}


def test_only_the_papers_scale_writes_logs():
    assert Request(Path("a/runs.sqlite")).tensorboard == Path("a/runs.logs")
    assert Request(scale="laptop").tensorboard is None


def test_budgets_are_those_asked_for_or_the_default():
    assert Request().budgets((10, 100)) == [10, 100]
    assert Request(epochs=(3, 1)).budgets((10,)) == [3, 1]
    with pytest.raises(ValueError, match="paper: 'epochs' must be >= 4, got 3"):
        Request(epochs=(3,)).budgets((10,), minimum=4)


def test_a_scale_is_chosen_by_its_name():
    assert Request(scale="smoke").scale_of({"paper": 1, "smoke": 2}) == 2
    with pytest.raises(ValueError, match="paper: 'scale' must be one of 'paper', 'smoke', got 'huge'"):
        Request(scale="huge").scale_of({"paper": 1, "smoke": 2})
