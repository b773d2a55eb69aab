import re
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from tests.report.test_page import tree
from tests.report.test_runs import store  # noqa: F401 -- a fixture
from tests.spectrum.test_measurement import record
from typer.testing import CliRunner

import eigencurve as ec
from eigencurve.cli import app
from eigencurve.spectrum.groups import group

pytest.importorskip("matplotlib", reason="matplotlib is not installed")
from eigencurve.figures.losses import losses_figure
from eigencurve.figures.rates import rates_figure
from eigencurve.figures.spectra import octave_figure, octave_panel
from eigencurve.figures.style import COLOURS, style
from eigencurve.planning.expectation import BEST, expect
from eigencurve.planning.recipe import Recipe
from eigencurve.planning.subject import Subject, law_subject, zoo_subject
from eigencurve.report.report import Expectation, report_page
from eigencurve.report.runs import panels_of
from eigencurve.report.svg import inline_svg

SPECTRUM = ec.Spectrum([-0.2, -0.001, 0.02, 0.5, 8.0], [1, 3, 20, 6, 1], dim=310)
NAME = "net <b> & co"


def subject(decay=1e-2):
    """A measured spectrum whose error bars are for the weight decay 1e-2."""
    octaves = group(ec.prepare(SPECTRUM, 1e-2))
    known = record(
        weight_decay=1e-2,
        made_by="<i>me</i>",
        octaves=type(record().octaves)(octaves.index, octaves.lower, octaves.share, octaves.share / 10),
    )
    return Subject(NAME, SPECTRUM, decay, known, "ec.load_spectrum('s.npz')", "a < b")


@pytest.fixture(scope="module")
def whole():
    recipe = Recipe("eigencurve", 300, 0.5, subject(), 10, {"beta": 2.0}, 1e-2)
    return report_page(recipe, Expectation(noise=10.0), command="eigencurve report <x>")


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


def test_all_text_is_escaped(whole):
    assert NAME not in whole
    assert "net &lt;b&gt; &amp; co" in whole
    assert "<i>me" not in whole


def test_the_page_says_what_was_computed(whole):
    text = " ".join("".join(tree(whole).itertext()).split())
    described = SPECTRUM.describe(1e-2)
    assert f"{described.kappa:.4g}" in text
    assert f"{described.fraction_negative:.2%} of all" in text
    assert f"exponent {described.exponent:.2f}" in text
    assert "standard error" in text
    compared = expect(subject(), 300, noise=10.0, best=True)
    for row in compared.rows:
        assert f"{row.loss:.5g}" in text
    assert f"{compared.lower_bound:.5g}" in text
    assert "higher than 2/L" in text
    assert "schedule = ec.warmup(schedule, 10)" in text
    assert "a < b" in text


def test_each_table_has_a_row_for_each_thing(whole):
    tables = {t[0].text: t for t in tree(whole).iter("table")}
    octaves = tables["The octaves that have eigenvalues"]
    assert len(list(octaves.iter("tr"))) == 1 + len(group(ec.prepare(SPECTRUM, 1e-2)))
    curve = ec.eigencurve(ec.prepare(SPECTRUM, 1e-2), 290, 0.5)
    assert len(list(tables["The intervals of the schedule"].iter("tr"))) == len(curve.times)
    losses = tables["Expected loss per parameter after 300 steps"]
    assert BEST in [row[0].text for row in losses.iter("tr")]


def test_the_same_report_is_the_same_page(whole):
    recipe = Recipe("eigencurve", 300, 0.5, subject(), 10, {"beta": 2.0}, 1e-2)
    assert report_page(recipe, Expectation(noise=10.0), command="eigencurve report <x>") == whole


def test_error_bars_for_another_weight_decay_are_not_shown():
    page = report_page(Recipe("eigencurve", 50, 0.1, subject(decay=1e-3)))
    assert "for another weight decay, 0.01, and not shown" in page
    assert "standard error" not in page
    assert "higher than 2/L" not in page
    assert "What to expect" not in page


def test_assumed_and_unexplained_spectra_say_so():
    assert "assumed, not measured" in report_page(Recipe("eigencurve", 50, 0.1, law_subject(1.5, 1e3)))
    assert "no error bars" in report_page(Recipe("eigencurve", 50, 0.1, zoo_subject("resnet20_cifar10")))


def test_runs_of_a_store_are_shown(store):  # noqa: F811
    page = report_page(panels=panels_of(store))
    text = "".join(tree(page).itertext())
    assert "ridge, epochs 10: of 4 settings tried, those with the lowest mean gap" in text
    assert "1.5 ± 0.71 (2)" in text
    assert "highest mean accuracy" in text
    with pytest.raises(ValueError, match="'panels' must be finished runs"):
        report_page()


def test_the_limit_has_a_curve_and_no_list_of_intervals():
    page = report_page(Recipe("eigencurve", 50, 0.1, law_subject(1.5, 1e3), settings={"beta": 1.0}))
    assert "The intervals of the schedule" not in page


def test_the_command_writes_the_page(tmp_path, monkeypatch, store):  # noqa: F811
    monkeypatch.chdir(tmp_path)
    words = ["report", "--power-law", "1.5", "--kappa", "1e3", "--steps", "60", "--no-best", "--store", str(store.path)]
    result = CliRunner().invoke(app, [*words, "-o", "r.html"])
    assert result.exit_code == 0, result.stderr
    page = Path("r.html").read_text()
    assert "Training runs" in page
    assert "What to expect" in page
    printed = CliRunner().invoke(app, [*words, "-o", "-"])
    assert printed.stdout == page.replace("-o r.html", "-o -")
    assert CliRunner().invoke(app, [*words, "-o", "r.html"]).exit_code == 2


def test_octaves_are_drawn_with_their_error_bars_and_law():
    axes = octave_panel(subject()).axes[0]
    labels = axes.get_legend_handles_labels()[1]
    assert {"share of the octave", "standard error", "Lanczos nodes"} <= set(labels)
    assert len(axes.patches) == len(group(subject().prepared))
    assert len(octave_figure(subject()).axes) == 2
    negative = octave_figure(subject()).axes[1]
    assert sum(bar.get_height() for bar in negative.patches) == pytest.approx(subject().fraction_negative)
    assert len(octave_figure(law_subject(1.5, 100)).axes) == 1


def test_losses_are_drawn_as_bias_and_variance():
    compared = expect(law_subject(1.5, 1e3), 50, noise=5.0)
    axes = losses_figure(compared).axes[0]
    ends = {}
    for bar in axes.patches:
        ends[bar.get_y()] = max(ends.get(bar.get_y(), 0.0), bar.get_x() + bar.get_width())
    assert sorted(ends.values()) == pytest.approx(sorted(row.loss for row in compared.rows))
    assert axes.lines[-1].get_xdata()[0] == compared.lower_bound


def test_curves_differ_in_colour_and_in_dashes():
    looks = [tuple(map(str, style(i).values())) for i in range(49)]
    assert len(set(looks)) == 49
    for first, second in pairwise(looks):
        assert first[0] != second[0]
        assert first[1] != second[1]
    assert len(COLOURS) == 7


def test_a_picture_is_the_same_each_time_and_keeps_to_its_name():
    pictures = [inline_svg(rates_figure({"f": ec.cosine(50, 0.1)}, "log"), "one", "what it shows") for _ in range(2)]
    assert pictures[0] == pictures[1]
    assert all(name.startswith("one-") for name in re.findall(r'\bid="([^"]+)"', pictures[0]))
    assert np.isfinite([float(n) for n in re.search(r'viewBox="([^"]+)"', pictures[0])[1].split()]).all()
