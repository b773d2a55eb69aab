import json

import pytest
from tests.paper.prediction.toys import images_file

from paper.engine.request import Request, Workers
from paper.prediction import tables


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of a smoke test with random images and without the weights of the ResNet-20."""
    folder = images_file(tmp_path_factory.mktemp("data"), num=100)
    request = Request(folder / "s.sqlite", Workers(1, "sequential"), data=folder, scale="smoke")
    return tables.make(request)


def test_a_problem_without_its_data_is_skipped_and_named(page):
    assert "The problem 'last-layer' is skipped: checkpoints/resnet20_cifar10.npz is missing" in page.body
    assert list(page.values) == ["ridge", "logistic", "network"]
    assert "## Last layer" not in page.body


def test_every_problem_has_its_section_and_every_figure_its_place(page):
    headings = [line for line in page.body.splitlines() if line.startswith("## ")]
    assert [heading.split()[1] for heading in headings] == ["Summary", "Ridge", "Logistic", "Network"]
    assert len(page.figures) == 4
    assert all(page.body.count(f"]({name})") == 1 for name in page.figures)


def test_values_are_plain(page):
    values = json.loads(json.dumps(page.values))
    assert set(values["logistic"]) == {"zero", "50 % away", "25 % away", "10 % away"}
    assert len(values["network"]["start"]["measured"]) == 10
