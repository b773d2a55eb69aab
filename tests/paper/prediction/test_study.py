from dataclasses import replace

import numpy as np
import pytest
from tests.paper.prediction.toys import PLAN, images_file, small_logistic, small_ridge

from paper.engine.request import Request, Workers
from paper.prediction import study
from paper.prediction.experiment import expected_gaps
from paper.prediction.scales import KINDS, SMOKE
from paper.prediction.study import DENSE, END, START, noise_effects, problem_makers, study_problem


def request_in(folder, **more):
    return Request(folder / "s.sqlite", Workers(1, "sequential"), **more)


@pytest.fixture(scope="module")
def ridge_findings(tmp_path_factory):
    """Ridge regression with many seeds, so that the mean of the runs is close to its expectation."""
    plan = replace(PLAN, num_seeds=400, seeds_together=400)
    return study_problem(small_ridge(), plan, request_in(tmp_path_factory.mktemp("ridge")))


def test_the_mean_of_the_runs_is_the_exact_expectation(ridge_findings):
    """The compiled runs, the stored curves and the recursion of the moments share no code."""
    (finding,) = ridge_findings.findings
    problem = ridge_findings.problem
    for i, pair in enumerate(finding.pairs):
        exact = expected_gaps(problem.ridge, pair.schedule, finding.marks, np.zeros(problem.dim), batch_size=1)
        # 4.5 standard errors: ten schedules at a dozen marks, all from the same 400 seeds
        assert (np.abs(finding.measured[i] - exact) <= 4.5 * finding.error[i] + 1e-12).all()


def test_a_ridge_finding_has_all_three_predictions(ridge_findings):
    (finding,) = ridge_findings.findings
    assert list(finding.predicted) == [END, START, DENSE]
    assert finding.excess == pytest.approx(ridge_findings.problem.excess(ridge_findings.problem.starts["zero"]))
    assert all(curves.shape == finding.measured.shape for curves in finding.predicted.values())
    # The spectrum and the start are exact in 7 dimensions; only the noise has a sampling error.
    np.testing.assert_allclose(finding.predicted[END][:, 0], finding.predicted[DENSE][:, 0], rtol=1e-6)
    np.testing.assert_allclose(finding.predicted[END], finding.predicted[DENSE], rtol=0.6)


def test_noise_that_depends_on_the_weights_matters_less_in_large_batches(ridge_findings, tmp_path):
    effects = noise_effects(ridge_findings, request_in(tmp_path))
    cases = [(effect.pair.kind, effect.pair.rate, effect.batch_size) for effect in effects]
    assert cases == [("cosine", 0.3, 1), *((kind, 0.1, 1) for kind in KINDS), ("cosine", 0.3, 8), ("cosine", 0.3, 64)]
    cosine = {e.batch_size: e.exact / e.quadratic for e in effects if e.pair.kind == "cosine" and e.pair.rate == 0.3}
    assert cosine[1] > cosine[8] > cosine[64] > 1
    assert cosine[64] == pytest.approx(1, abs=0.02)
    problem, pair = ridge_findings.problem, effects[0].pair
    marks = ridge_findings.findings[0].marks
    expected = expected_gaps(problem.ridge, pair.schedule, marks, np.zeros(problem.dim), batch_size=1)
    np.testing.assert_array_equal(effects[0].curve, expected)


def test_only_ridge_regression_has_the_exact_expectation(tmp_path):
    found = study_problem(small_logistic((1.0,)), PLAN, request_in(tmp_path))
    with pytest.raises(ValueError, match="'found' must be of ridge regression, got logistic"):
        noise_effects(found, request_in(tmp_path))


def test_a_second_study_repeats_no_run(tmp_path, monkeypatch):
    request = request_in(tmp_path)
    first = study_problem(small_logistic(), PLAN, request)
    monkeypatch.setattr(study.PredictedRuns, "run", lambda *_: pytest.fail("a run was repeated"))
    again = study_problem(small_logistic(), PLAN, request)
    for one, other in zip(first.findings, again.findings, strict=True):
        np.testing.assert_array_equal(one.measured, other.measured)
        np.testing.assert_array_equal(one.predicted[START], other.predicted[START])


def test_the_network_has_no_dense_matrices(tmp_path):
    makers = problem_makers(request_in(tmp_path, data=images_file(tmp_path)), SMOKE)
    found = study_problem(makers["network"](), SMOKE.plans["network"], request_in(tmp_path))
    assert [finding.start for finding in found.findings] == ["start", "after 10 %", "after 50 %", "end"]
    assert all(list(finding.predicted) == [END, START] for finding in found.findings)
    last = found.findings[-1]
    assert last.excess == 0
    assert last.top == found.end.prepared.L
