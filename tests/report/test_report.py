import re

import pytest
from tests.report.measured import NAME, measured_subject
from tests.report.test_page import tree
from tests.report.test_runs import store  # noqa: F401 -- a fixture

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
import eigencurve as ec
from eigencurve.planning.inputs import inputs_of
from eigencurve.planning.limits import rate_limit
from eigencurve.planning.recipe import Recipe
from eigencurve.planning.subject import law_subject
from eigencurve.planning.training import Training
from eigencurve.report.report import ComparisonSettings, report_page
from eigencurve.report.runs import panels_of


@pytest.fixture(scope="module")
def whole():
    recipe = Recipe("eigencurve", 300, 0.5, measured_subject(), 10, {"beta": 2.0}, Training("sgd", weight_decay=1e-2))
    return _report(recipe)


def _report(recipe):
    settings = ComparisonSettings(inputs_of(measured_subject(), 10.0))
    plan = ec.plan(measured_subject(), total_steps=300, lr=recipe.lr, noise=10.0, warmup_steps=10)
    return report_page(recipe, settings, command="eigencurve report <x>", plan=plan)


def test_the_page_stands_alone(whole):
    assert "http" not in whole
    assert "<script" not in whole
    assert "<img" not in whole
    assert "<link" not in whole
    assert not re.search(r"url\((?!#)", whole)


def test_the_page_is_one_tree_and_its_identifiers_are_unique(whole):
    root = tree(whole)
    names = [element.get("id") for element in root.iter() if element.get("id")]
    assert len(names) == len(set(names))
    used = set(re.findall(r"url\(#([^)]+)\)", whole)) | set(re.findall(r'href="#([^"]+)"', whole))
    assert used <= set(names)


def test_every_picture_is_described_and_takes_its_colours_from_the_page(whole):
    pictures = list(tree(whole).iter("svg"))
    assert len(pictures) == 6
    for picture in pictures:
        assert picture.get("role") == "img"
        assert len(picture.get("aria-label")) > 40
        assert picture[0].tag == "title"
        inside = " ".join(value for element in picture.iter() for value in element.attrib.values())
        assert "var(--c0)" in inside or "var(--c3)" in inside
        assert "#0072b2" not in inside.lower()
        assert "#000000" not in inside
        assert "currentColor" in inside


def test_the_verdict_is_above_everything_but_the_title(whole):
    root = tree(whole)
    first, second = list(root.iter("section"))[:2]
    assert next(first.iter("p")).get("class") == "verdict"
    assert next(root.iter("a")).get("href") == f"#{second[0].get('id')}"
    assert whole.index("<header><h1>") < whole.index('class="verdict"') < whole.index("<nav")


def test_a_rate_above_the_limit_is_pointed_out_next_to_it(whole):
    limit = rate_limit(measured_subject())
    assert f"Peak rate {limit.about(0.5)}." in whole
    stable = Recipe("eigencurve", 50, limit.rate, measured_subject(), settings={"beta": 2.0})
    assert f"Peak rate {limit.rate:.4g}; {limit}." in report_page(stable)


def test_every_figure_of_rates_says_which(whole):
    captions = [element.text for element in tree(whole).iter("figcaption")]
    rates = [caption for caption in captions if "rates" in caption]
    assert len(rates) == 3
    assert sum("peak rate 0.5" in caption for caption in rates) == 2
    assert sum("each at its best peak rate (" in caption for caption in rates) == 1


def test_the_settings_name_the_source_of_noise_and_start(whole):
    assert "given, σ² = 10" in whole
    assert "assumed, initial error 1 in every direction" in whole


def test_all_text_is_escaped(whole):
    assert NAME not in whole
    assert "net &lt;b&gt; &amp; co" in whole
    assert "<i>me" not in whole


def test_the_same_report_is_the_same_page(whole):
    recipe = Recipe("eigencurve", 300, 0.5, measured_subject(), 10, {"beta": 2.0}, Training("sgd", weight_decay=1e-2))
    assert _report(recipe) == whole


def test_the_page_has_the_parts_that_it_is_asked_for(whole, store):  # noqa: F811
    heads = [head.text for head in tree(whole).iter("h2")]
    compared = "Comparison with other schedules"
    first = ["Which schedule to use", "Curvature of the loss", "The Eigencurve schedule"]
    assert heads == [*first, compared, "Settings and versions"]
    assert compared not in report_page(Recipe("eigencurve", 50, 0.1, law_subject(1.5, 1e3)))
    runs = report_page(panels=panels_of(store))
    assert [head.text for head in tree(runs).iter("h2")] == ["Training runs", "Settings and versions"]
    with pytest.raises(ValueError, match="'panels' must be finished runs"):
        report_page()
