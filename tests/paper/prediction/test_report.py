import json
import re
from dataclasses import replace

import numpy as np
import pytest
from tests.paper.prediction.toys import PLAN, images_file, small_logistic, small_ridge

from paper.engine.request import Request, Workers
from paper.prediction import report
from paper.prediction.findings import rank_correlation, typical_factor
from paper.prediction.study import END, ProblemFindings, noise_effects, ratios, study_problem


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    return Request(tmp_path_factory.mktemp("report") / "s.sqlite", Workers(1, "sequential"))


@pytest.fixture(scope="module")
def found(asked):
    return [study_problem(problem, PLAN, asked) for problem in (small_ridge(), small_logistic())]


def rows_of(table):
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]


def test_the_summary_has_a_row_for_every_start(found):
    rows = rows_of(report.summary_table(found))
    assert [row[:2] for row in rows] == [["ridge", "zero"], ["logistic", "zero"], ["logistic", "10 % away"]]
    last = found[1].findings[1]
    assert rows[2][5] == f"{typical_factor(ratios(found[1], last, END)):.3g}"
    assert rows[2][6] == f"{rank_correlation(last, END):.2f}"


def test_the_tuned_table_has_the_best_rate_of_every_schedule(found):
    finding = found[1].findings[0]
    for kind, rate, loss, *_ in rows_of(report.tuned_table(found[1])):
        finals = {p.rate: finding.measured[i, -1] for i, p in enumerate(finding.pairs) if p.kind == kind}
        assert float(rate) == min(finals, key=finals.get)
        assert loss == f"{min(finals.values()):.3g}"


def test_the_shown_table_has_one_row_for_each_schedule_at_the_rate(found):
    rows = rows_of(report.shown_table(found[0]))
    assert [row[0] for row in rows] == ["constant", "cosine", "linear", "wsd", "eigencurve"]
    assert all(re.fullmatch(r"\S+ ± \S+", row[1]) for row in rows)


def test_a_pair_that_diverges_is_said_to(found):
    finding = found[1].findings[0]
    broken = replace(finding, measured=np.full_like(finding.measured, np.inf))
    one = ProblemFindings(found[1].problem, found[1].plan, found[1].end, found[1].dense, (broken,))
    assert rows_of(report.summary_table([one]))[0][3:6] == ["diverges", "–", "–"]
    assert "not comparable" in report.verdict(one)


def test_the_page_explains_every_problem(found, asked):
    body = report.text(found, noise_effects(found[0], asked), ["The problem 'network' is skipped: no images."])
    assert "The problem 'network' is skipped: no images." in body
    assert "From a start 10 % away from the minimum" in body
    assert "the noise grows with the distance from the minimum" in body
    assert body.count("\n## ") == 3


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The page of a smoke test with random images and without the weights of the ResNet-20."""
    folder = images_file(tmp_path_factory.mktemp("data"), num=100)
    request = Request(folder / "s.sqlite", Workers(1, "sequential"), data=folder, scale="smoke")
    return report.make(request)


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
