import pytest

import eigencurve as ec
from eigencurve.planning.baselines import BASELINES, LABELS, shape_in_words, usual_schedules


@pytest.mark.parametrize("name", BASELINES)
@pytest.mark.parametrize(("total", "rise"), [(1, 0), (2, 1), (97, 0), (1000, 100)])
def test_every_baseline_has_its_length_its_peak_and_its_warmup(name, total, rise):
    (schedule,) = usual_schedules([name], total, 0.3, rise).values()
    assert schedule.total_steps == total
    assert schedule.values().max() == pytest.approx(0.3)
    assert schedule(rise) == pytest.approx(0.3)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("cosine_0", ec.cosine(100, 0.1)),
        ("cosine_10", ec.cosine(100, 0.1, 0.1 * 0.1)),
        ("linear_0", ec.linear(100, 0.1)),
        ("wsd_40", ec.wsd(100, 0.1, 40)),
        ("elastic_step", ec.elastic_step(100, 0.1)),
        ("exponential", ec.exponential(100, 0.1, 1e-4)),
        ("inverse_time", ec.inverse_time(100, 0.1, 1e-3)),
    ],
)
def test_the_names_say_which_schedule_it_is(name, expected):
    assert usual_schedules([name], 100, 0.1) == {name: expected}
    assert name in LABELS


def test_a_tail_is_a_share_of_the_run_or_of_the_steps_after_the_warmup():
    after, whole = (usual_schedules(["wsd_20"], 100, 0.1, 50, steps)["wsd_20"] for steps in (None, 100))
    assert after(89) == whole(79) == 0.1
    assert after(91) < 0.1
    assert whole(81) < 0.1


def test_eigencurve_needs_a_spectrum_with_different_eigenvalues():
    spectrum = ec.Spectrum([1.0, 8.0], [5, 1])
    made = usual_schedules(["eigencurve", "eigencurve_optimal"], 100, 0.1, spectrum=spectrum)
    assert made["eigencurve"] == ec.eigencurve(spectrum, 100, 0.1)
    assert made["eigencurve_optimal"] == ec.eigencurve(spectrum, 100, 0.1, allocation="optimal")
    for other in (None, ec.Spectrum([2.0], [1])):
        assert usual_schedules(["eigencurve", "linear_0"], 100, 0.1, spectrum=other).keys() == {"linear_0"}


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (ec.constant(100, 0.1), "hold the rate to the end"),
        (ec.wsd(1000, 0.1, 150), "hold the rate for 85 % of the run and decay over the last 15 %"),
        (ec.linear(1000, 0.1), "decay from the beginning"),
        (ec.cosine(1000, 0.1, 0.01), "decay from the beginning to 10 % of the peak"),
    ],
)
def test_the_shape_in_words(schedule, words):
    """Equal up to one percent point in each number."""
    shape = shape_in_words(schedule)
    numbers = [[int(w) for w in text.split() if w.isdigit()] for text in (shape, words)]
    plain = ["".join(c for c in text if not c.isdigit()) for text in (shape, words)]
    assert plain[0] == plain[1]
    assert all(abs(a - b) <= 1 for a, b in zip(*numbers, strict=True))
