import io

import pytest

pytest.importorskip("torch")

import torch
from tests.adapters.recording import make_optimizer, recorded

import eigencurve as ec
from eigencurve.adapters.wall_clock import WallClockLR

F = ec.linear(100, 0.5)


class Clock:
    """A clock that the test sets."""

    def __init__(self, now=1000.0):
        self.now = now

    def __call__(self):
        return self.now


def running(clock, schedule=F, groups=({},), **options):
    optimizer = make_optimizer(*groups, lr=0.5)
    return optimizer, WallClockLR(optimizer, schedule, seconds=60.0, clock=clock, **options)


def train(clock, optimizer, scheduler, durations):
    for seconds in durations:
        optimizer.step()
        clock.now += seconds
        scheduler.step()


def saved(state):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)


def test_the_rate_follows_the_share_of_the_time_not_the_steps():
    clock = Clock()
    optimizer, scheduler = running(clock)
    seen = recorded(optimizer)
    durations = [0.0, 6.0, 0.6, 23.4, 29.99, 5.0]
    train(clock, optimizer, scheduler, durations)
    assert [rates[0] for rates in seen] == [F(0), F(0), F(10), F(11), F(50), F(99)]
    assert scheduler.finished
    assert scheduler.get_last_lr() == [F(99)]
    assert scheduler.elapsed == pytest.approx(sum(durations))


def test_a_resumed_run_has_the_rest_of_the_budget():
    clock = Clock()
    optimizer, scheduler = running(clock, [F, ec.cosine(100, 0.1)], ({}, {}))
    train(clock, optimizer, scheduler, [10.0, 8.0])
    state = saved(scheduler.state_dict())
    later = Clock(-5.0)  # another machine, long after
    second, again = running(later, [F, ec.cosine(100, 0.1)], ({}, {}))
    again.load_state_dict(state)
    assert again.get_last_lr() == [F(30), ec.cosine(100, 0.1)(30)]
    train(later, second, again, [12.0])
    assert again.elapsed == pytest.approx(30.0)
    assert again.get_last_lr() == [F(50), ec.cosine(100, 0.1)(50)]
    alone = WallClockLR.resume(make_optimizer({}, {}, lr=0.5), state)
    assert (alone.elapsed, alone.seconds, alone.schedules) == (18.0, 60.0, again.schedules)
    assert alone.get_last_lr() == [F(30), ec.cosine(100, 0.1)(30)]


def test_the_real_clock_moves_on():
    optimizer = make_optimizer({}, lr=0.5)
    scheduler = WallClockLR(optimizer, F, seconds=1e9)
    optimizer.step()
    scheduler.step()
    assert 0 < scheduler.elapsed < 1e6
    assert not scheduler.finished


@pytest.mark.parametrize(
    ("call", "match"),
    [
        (lambda: WallClockLR(make_optimizer({}, lr=0.5), F, seconds=0), "WallClockLR: 'seconds' must be > 0"),
        (lambda: running(Clock(), [F, ec.linear(9, 0.5)], ({}, {})), r"of one length for all groups, got \[9, 100\]"),
        (lambda: running(Clock())[1].load_state_dict({}), "the state of a WallClockLR"),
        (
            lambda: running(Clock())[1].load_state_dict({**running(Clock())[1].state_dict(), "seconds": 90.0}),
            "budget of 60 seconds, got 90.0. Another budget would make the rate jump",
        ),
    ],
)
def test_refuses_bad_settings(call, match):
    with pytest.raises(ValueError, match=match):
        call()


@pytest.mark.parametrize("elapsed", [float("nan"), float("inf"), -1.0, "x"])
def test_a_damaged_time_is_refused_and_changes_nothing(elapsed):
    clock = Clock()
    optimizer, scheduler = running(clock)
    train(clock, optimizer, scheduler, [10.0, 8.0])
    before = saved(scheduler.state_dict())
    with pytest.raises((ValueError, TypeError), match="WallClockLR: 'elapsed' must be"):
        scheduler.load_state_dict({**before, "elapsed": elapsed, "last_epoch": 0})
    assert scheduler.state_dict() == before
    with pytest.raises(ValueError, match="the state of a WallClockLR"):
        scheduler.load_state_dict({name: value for name, value in before.items() if name != "seconds"})
