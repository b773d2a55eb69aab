import copy
import io
import json
import math
import pickle
import re
import warnings
from itertools import pairwise

import pytest
import torch
from tests.adapters import recording
from torch import nn
from torch.optim.lr_scheduler import LambdaLR, LinearLR, SequentialLR

import eigencurve as ec
from eigencurve.adapters.torch import ScheduleLR, torch_schedule
from eigencurve.hessian import HessianOperator, estimate_spectrum
from eigencurve.schedules import epochs

SPECTRUM = ec.Spectrum([1.0, 2.0, 4.0, 64.0], [8, 4, 2, 1])


def schedules(total_steps=7, lr=0.5):
    return [
        ec.eigencurve(SPECTRUM, total_steps, lr),
        ec.cosine(total_steps, lr),
        ec.step_decay(total_steps, lr),
        ec.elastic_step(total_steps, lr),
        ec.warmup(ec.inverse_time(total_steps - 2, lr, 0.01), 2),
    ]


def make_optimizer(rates=(0.5,)):
    return recording.make_optimizer(*({"lr": rate} for rate in rates), lr=rates[0])


def stepped(schedule, num_steps, rates=(0.5,)):
    """An optimizer and its scheduler after some steps."""
    optimizer = make_optimizer(rates)
    scheduler = ScheduleLR(optimizer, schedule)
    for _ in range(num_steps):
        optimizer.step()
        scheduler.step()
    return optimizer, scheduler


def saved(state):
    """The state after a round trip through a file, loaded with ``weights_only=True``."""
    buffer = io.BytesIO()
    torch.save(state, buffer)
    buffer.seek(0)
    return torch.load(buffer, weights_only=True)


def rates_of(optimizer):
    return [float(group["lr"]) for group in optimizer.param_groups]


@pytest.mark.parametrize("schedule", schedules(), ids=lambda s: s.kind)
@pytest.mark.parametrize("stop", [0, 1, 3, 6])
def test_hurt_2_save_and_resume_is_exact(schedule, stop):
    optimizer, scheduler = stepped(schedule, stop, (0.5, 0.05))
    states = saved({"scheduler": scheduler.state_dict(), "optimizer": optimizer.state_dict()})
    again = make_optimizer((0.5, 0.05))
    for load in ("optimizer first", "scheduler first", "from the state alone"):
        fresh = make_optimizer((0.5, 0.05))
        if load == "optimizer first":
            fresh.load_state_dict(states["optimizer"])
        resumed = (
            ScheduleLR.resume(fresh, states["scheduler"])
            if load == "from the state alone"
            else ScheduleLR(fresh, schedule)
        )
        resumed.load_state_dict(states["scheduler"])
        for t in range(stop, schedule.total_steps):
            assert rates_of(fresh) == [schedule(t), schedule(t) * (0.05 / 0.5)], load
            fresh.step()
            resumed.step()
    assert rates_of(again) == [0.5, 0.05]


def test_rates_held_in_tensors_stay_tensors():
    rate = torch.tensor(0.5)
    optimizer = torch.optim.Adam([nn.Parameter(torch.ones(2))], lr=rate, capturable=False, foreach=False)
    scheduler = ScheduleLR(optimizer, ec.linear(4, lr=0.2))
    optimizer.step()
    scheduler.step()
    assert isinstance(optimizer.param_groups[0]["lr"], torch.Tensor)
    assert rates_of(optimizer) == pytest.approx([0.15])


def test_groups_that_share_the_tensor_of_their_rate_get_one_each():
    groups = [{"params": [nn.Parameter(torch.zeros(1))]} for _ in range(2)]
    optimizer = torch.optim.AdamW(groups, lr=torch.tensor(0.5))
    scheduler = ScheduleLR(optimizer, [ec.linear(10, 0.5), ec.constant(10, 0.25)])
    for step in range(3):
        assert rates_of(optimizer) == pytest.approx([ec.linear(10, 0.5)(step), 0.25])
        optimizer.step()
        scheduler.step()


def test_a_group_that_is_removed_is_refused():
    optimizer = torch.optim.SGD([{"params": [nn.Parameter(torch.zeros(1))]} for _ in range(2)], lr=0.1)
    scheduler = ScheduleLR(optimizer, ec.linear(10, 0.1))
    optimizer.param_groups.pop()
    with pytest.raises(ValueError, match=r"'optimizer' must be of 2 parameter groups, got 1.*make a new scheduler"):
        scheduler.step()


def test_hurt_3_another_horizon_on_resume_is_an_error_that_names_extend():
    state = saved(stepped(ec.cosine(10, 0.5), 4)[1].state_dict())
    longer = ScheduleLR(make_optimizer(), ec.cosine(20, 0.5))
    with pytest.raises(ValueError, match=r"total_steps=20.*total_steps=10.*call extend"):
        longer.load_state_dict(state)
    resumed = ScheduleLR.resume(make_optimizer(), state)
    resumed.extend(ec.cosine(20, 0.5))
    assert resumed.get_last_lr() == [ec.cosine(20, 0.5)(4)]
    assert ScheduleLR.resume(make_optimizer(), saved(resumed.state_dict())).schedule.total_steps == 20
    with pytest.raises(ValueError, match=r"ScheduleLR.extend: 'schedule' must be longer than the 4 steps"):
        resumed.extend(ec.cosine(4, 0.5))


def test_inside_sequential_lr():
    optimizer = make_optimizer()
    warm = LinearLR(optimizer, start_factor=0.1, total_iters=3)
    main = ScheduleLR(optimizer, ec.cosine(6, 0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # SequentialLR itself uses a call that PyTorch deprecates
        both = SequentialLR(optimizer, [warm, main], milestones=[3])
        seen = []
        for _ in range(9):
            seen.append(rates_of(optimizer)[0])
            optimizer.step()
            both.step()
    assert seen[:3] == pytest.approx([0.05, 0.2, 0.35])
    assert seen[3:] == ec.cosine(6, 0.5).values().tolist()


def test_hurt_6_scheduler_and_optimizer_can_be_pickled():
    optimizer = make_optimizer()
    scheduler = ScheduleLR(optimizer, ec.cosine(5, 0.5))
    assert pickle.loads(pickle.dumps(scheduler.schedule)) == scheduler.schedule
    pickle.dumps(optimizer.state_dict())


@pytest.mark.parametrize("schedule", schedules(), ids=lambda s: s.kind)
def test_hurt_6_the_state_is_plain_and_loads_with_weights_only(schedule):
    state = ScheduleLR(make_optimizer(), schedule).state_dict()
    assert saved(state) == json.loads(json.dumps(state)) == pickle.loads(pickle.dumps(state)) == state


def test_hurt_7_the_curve_can_be_seen_before_the_run():
    optimizer = make_optimizer()
    scheduler = ScheduleLR(optimizer, ec.linear(64, 0.5))
    text = scheduler.schedule.preview(width=64, height=4)
    assert text.splitlines()[0].startswith("0.5 |█")
    assert "step 32 (" in scheduler.schedule.describe()  # the step at half the rate
    assert (scheduler.last_epoch, rates_of(optimizer)) == (0, [0.5])


def test_what_to_do_with_the_state_of_another_schedule():
    state = saved(stepped(ec.cosine(10, 0.5), 4)[1].state_dict())
    extending = ScheduleLR(make_optimizer(), ec.cosine(20, 0.5), on_resume="extend")
    extending.load_state_dict(state)
    assert extending.get_last_lr() == [ec.cosine(20, 0.5)(4)]
    adopting = ScheduleLR(make_optimizer(), ec.cosine(20, 0.5), on_resume="adopt")
    adopting.load_state_dict(state)
    assert adopting.get_last_lr() == [ec.cosine(10, 0.5)(4)]
    with pytest.raises(ValueError, match="'schedule' must be longer than the 4 steps already taken"):
        ScheduleLR(make_optimizer(), ec.cosine(4, 0.5), on_resume="extend").load_state_dict(state)
    with pytest.raises(ValueError, match="'on_resume' must be one of 'refuse', 'extend', 'adopt'"):
        ScheduleLR(make_optimizer(), ec.cosine(4, 0.5), on_resume="guess")


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: ScheduleLR(make_optimizer(), 0.1), TypeError, "'schedule' must be a Schedule"),
        (lambda: ScheduleLR(nn.Linear(1, 1), ec.cosine(5, 0.5)), TypeError, "a torch.optim.Optimizer"),
        (lambda: ScheduleLR(make_optimizer((0.0, 1.0)), ec.cosine(5, 0.5)), ValueError, "first group has a rate > 0"),
        (lambda: stepped(ec.cosine(5, 0.5), 0)[1].load_state_dict({"last_epoch": 3}), ValueError, "of a ScheduleLR"),
    ],
)
def test_bad_arguments(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_one_call_from_a_model_to_its_schedule():
    source = torch.Generator().manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
    batch = (torch.randn(32, 4, generator=source), torch.randint(0, 3, (32,), generator=source))
    with pytest.warns(UserWarning, match=r"torch_schedule: The spectrum has not settled \(20 products.*'num_products'"):
        schedule, estimate = torch_schedule(
            model, nn.functional.cross_entropy, batch, total_steps=50, lr=0.1, weight_decay=1e-3, num_products=20,
            min_lr=1e-4,
        )  # fmt: skip
    assert (schedule.total_steps, schedule(0), schedule(49)) == (50, 0.1, pytest.approx(1e-4))
    again = estimate_spectrum(
        HessianOperator(model, nn.functional.cross_entropy, batch), 20, weight_decay=1e-3, total_steps=50
    )
    assert schedule == ec.eigencurve(ec.spectrum.prepare(again.spectrum, 1e-3), 50, 0.1, 1e-4)
    assert estimate.spectrum == again.spectrum
    assert ec.torch_schedule is torch_schedule
    with pytest.warns(UserWarning, match="has not settled"):
        in_epochs, _ = torch_schedule(
            model, nn.functional.cross_entropy, batch, epochs(5, 10), lr=0.1, weight_decay=1e-3, min_lr=1e-4,
            num_products=20,
        )  # fmt: skip
    assert in_epochs == schedule


def test_bad_settings_of_the_one_call_are_refused_before_the_model_runs():
    def untouched(*_):
        raise AssertionError("the loss was called")

    model, batch = nn.Linear(2, 1), (torch.ones(3, 2), torch.ones(3, 1))
    for bad, match in [({"total_steps": 0}, "torch_schedule: 'total_steps'"), ({"num_probes": 0}, "'num_probes'"),
                       ({"weight_decay": 0.0}, "'weight_decay' must be > 0")]:  # fmt: skip
        with pytest.raises(ValueError, match=match):
            torch_schedule(model, untouched, batch, **{"total_steps": 5, "lr": 0.1, "weight_decay": 1e-3, **bad})
    with pytest.raises(TypeError, match="unexpected keyword argument 'nmu_steps'"):
        torch_schedule(model, untouched, batch, 5, lr=0.1, weight_decay=1e-3, nmu_steps=3)


def test_the_step_count_is_that_of_torch_s_own_schedulers():
    """PyTorch compares it with the optimizer's to warn of a wrong order of calls."""
    optimizer, twin = make_optimizer(), make_optimizer()
    scheduler, other = ScheduleLR(optimizer, ec.cosine(7, 0.5)), LambdaLR(twin, lambda _: 1.0)
    for _ in range(3):
        for part in (optimizer, twin, scheduler, other):
            part.step()
        assert scheduler._step_count == other._step_count
    state = scheduler.state_dict()
    assert state["step_count"] == 4
    resumed = ScheduleLR(make_optimizer(), ec.cosine(7, 0.5))
    resumed.load_state_dict(state)
    assert resumed._step_count == 4


# ---- Cooldowns and extensions


@pytest.mark.parametrize("shape", ["linear", "1-sqrt", "cosine", "eigencurve"])
def test_a_running_scheduler_cools_down_and_is_saved_and_resumed(shape):
    spectrum = SPECTRUM if shape == "eigencurve" else None
    hold = ec.constant(1000, 0.5)
    wanted = ec.cooldown(hold, 5, 6, shape, spectrum=spectrum)
    optimizer, scheduler = stepped(hold, 5, (0.5, 0.05))
    checkpoint = saved(scheduler.state_dict())
    scheduler.cooldown(num_steps=6, shape=shape, spectrum=spectrum)
    branch = ScheduleLR.resume(make_optimizer((0.5, 0.05)), checkpoint)  # the same decision from the checkpoint
    branch.cooldown(num_steps=6, shape=shape, spectrum=spectrum)
    assert branch.schedule == scheduler.schedule == wanted
    for t in range(5, 9):
        assert rates_of(optimizer) == [wanted(t), wanted(t) * (0.05 / 0.5)]
        optimizer.step()
        scheduler.step()
    resumed = ScheduleLR.resume(make_optimizer((0.5, 0.05)), saved(scheduler.state_dict()))
    assert resumed.get_last_lr() == [wanted(9), wanted(9) * (0.05 / 0.5)]


def test_a_cooldown_may_be_planned_but_not_in_the_past():
    _, scheduler = stepped(ec.constant(100, 0.5), 3)
    scheduler.cooldown(from_step=10, num_steps=5, min_lr=0.1)
    assert scheduler.schedule == ec.cooldown(ec.constant(100, 0.5), 10, 5, min_lr=0.1)
    with pytest.raises(
        ValueError, match=r"ScheduleLR.cooldown: 'from_step' must be >= 3, the next step, got 2. Resume"
    ):
        scheduler.cooldown(from_step=2, num_steps=5)


def test_hurt_3_extending_a_decayed_schedule_warns_and_a_rewarmup_does_not_jump():
    short, long = ec.cosine(10, 0.5), ec.cosine(40, 0.5)
    _, jumping = stepped(short, 9)
    with pytest.warns(UserWarning, match=r"ScheduleLR.extend: the rate jumps from 0.0122 to 0.44 at step 9.*rewarm=1"):
        jumping.extend(long)
    assert jumping.get_last_lr() == [long(9)]
    optimizer, scheduler = stepped(short, 9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scheduler.extend(long, rewarm=10)
    seen = [short(8)]
    for _ in range(9, 40):
        seen.append(rates_of(optimizer)[0])
        optimizer.step()
        scheduler.step()
    assert max(later - earlier for earlier, later in pairwise(seen)) < 0.05
    assert seen[11:] == [long(t) for t in range(19, 40)]
    assert ScheduleLR.resume(make_optimizer(), saved(scheduler.state_dict())).schedule == scheduler.schedule


def test_hurt_3_resuming_with_another_length_after_the_decay_warns():
    state = saved(stepped(ec.cosine(10, 0.5), 9)[1].state_dict())
    longer = ScheduleLR(make_optimizer(), ec.cosine(40, 0.5), on_resume="extend")
    with pytest.warns(UserWarning, match=r"ScheduleLR: the rate jumps from 0.0122 to 0.44"):
        longer.load_state_dict(state)


# ---- A schedule for each group


NAMED = (
    {"lr": 0.5, "name": "body"},
    {"lr": 0.05, "name": "body"},
    {"lr": 0.3, "name": "head"},
    {"lr": 0.2, "name": "old"},
)
F, G = ec.warmup(ec.cosine(6, 0.4), 2), ec.linear(8, 0.01)
EACH = {
    "mapping": ({"head": G, "body": F, "old": None}, lambda t: [F(t), F(t) * (0.05 / 0.5), G(t), 0.2]),
    "list": ([F, G, G, None], lambda t: [F(t), G(t), G(t), 0.2]),
}


@pytest.mark.parametrize("form", EACH)
@pytest.mark.parametrize("stop", [0, 3, 7])
def test_each_group_follows_its_own_schedule_also_after_a_resume(form, stop):
    given, wanted = EACH[form]
    optimizer = recording.make_optimizer(*NAMED, lr=0.5)
    scheduler = ScheduleLR(optimizer, given)
    for t in range(stop):
        assert rates_of(optimizer) == scheduler.get_last_lr() == wanted(t)
        optimizer.step()
        scheduler.step()
    state = saved({"scheduler": scheduler.state_dict(), "optimizer": optimizer.state_dict()})
    for way in ("load", "resume", "adopt"):
        fresh = recording.make_optimizer(*NAMED, lr=0.5)
        fresh.load_state_dict(state["optimizer"])
        if way == "resume":
            again = ScheduleLR.resume(fresh, state["scheduler"])
        else:
            other = given if way == "load" else ec.constant(99, 0.7)
            again = ScheduleLR(fresh, other, on_resume="refuse" if way == "load" else "adopt")
            again.load_state_dict(state["scheduler"])
        for t in range(stop, 10):
            assert rates_of(fresh) == wanted(t), way
            fresh.step()
            again.step()


def test_the_state_of_other_groups_is_refused_and_may_be_extended():
    optimizer = recording.make_optimizer(*NAMED, lr=0.5)
    state = saved(ScheduleLR(optimizer, [F, G, G, None]).state_dict())
    with pytest.raises(ValueError, match="the state of this scheduler's schedule"):
        ScheduleLR(recording.make_optimizer(*NAMED, lr=0.5), [F, F, G, None]).load_state_dict(state)
    longer = ec.linear(20, 0.01)
    again = ScheduleLR(recording.make_optimizer(*NAMED, lr=0.5), [F, longer, G, None], on_resume="extend")
    again.load_state_dict(state)
    assert again.schedules == [F, longer, G, None]
    again.extend([F, longer, longer, F])
    assert again.schedules == [F, longer, longer, F]
    with pytest.raises(ValueError, match="'schedule' must be a list or a mapping, as before"):
        again.extend(F)
    with pytest.raises(ValueError, match="'schedule' must be one Schedule, as before"):
        ScheduleLR(make_optimizer(), F).extend([F])


def test_every_group_cools_down_in_its_proportion():
    optimizer = recording.make_optimizer(*NAMED, lr=0.5)
    scheduler = ScheduleLR(optimizer, [ec.constant(9, 0.4), ec.constant(9, 0.1), None, None])
    scheduler.cooldown(from_step=4, num_steps=4, min_lr=0.04)
    assert scheduler.schedules[1] == ec.cooldown(ec.constant(9, 0.1), 4, 4, min_lr=0.01)
    assert scheduler.schedules[2] is None


# ---- Weight decay that follows the rate


def test_weight_decay_follows_the_rate_on_request_also_after_a_resume():
    def make():
        groups = [{"params": [nn.Parameter(torch.ones(2))], "weight_decay": decay} for decay in (0.1, 0.0, 0.3)]
        return torch.optim.AdamW(groups, lr=0.4)

    def decays(optimizer):
        return [group["weight_decay"] for group in optimizer.param_groups]

    given = [F, F, None]
    optimizer = make()
    scheduler = ScheduleLR(optimizer, given, scale_weight_decay=True)
    for t in range(4):
        assert decays(optimizer) == pytest.approx([0.1 * F(t) / 0.4, 0.0, 0.3])
        optimizer.step()
        scheduler.step()
    state = saved({"scheduler": scheduler.state_dict(), "optimizer": optimizer.state_dict()})
    for way in ("load", "resume"):
        fresh = make()
        fresh.load_state_dict(state["optimizer"])
        if way == "resume":
            again = ScheduleLR.resume(fresh, state["scheduler"])
        else:
            again = ScheduleLR(fresh, given, scale_weight_decay=True)
            again.load_state_dict(state["scheduler"])
        for t in range(4, 9):
            assert decays(fresh) == pytest.approx([0.1 * F(t) / 0.4, 0.0, 0.3]), way
            fresh.step()
            again.step()


def test_weight_decay_stays_unless_asked_for_and_must_exist():
    optimizer, _ = stepped(ec.linear(4, 0.5), 2)
    assert optimizer.param_groups[0]["weight_decay"] == 0

    class Plain(torch.optim.Optimizer):
        def __init__(self, params):
            super().__init__(params, {"lr": 0.1})

    with pytest.raises(ValueError, match="'scale_weight_decay' must be left out for an optimizer without weight decay"):
        ScheduleLR(Plain([nn.Parameter(torch.ones(1))]), F, scale_weight_decay=True)


def test_a_state_of_the_first_version_is_read():
    f = ec.cosine(10, 0.5)
    state = {"version": 1, "schedule": f.to_dict(), "last_epoch": 4, "step_count": 5, "ratios": [1.0]}
    assert stepped(f, 4)[1].state_dict() == state
    assert ScheduleLR.resume(make_optimizer(), state).get_last_lr() == [f(4)]
    with pytest.raises(ValueError, match="the state of a ScheduleLR, version 2 or older"):
        ScheduleLR.resume(make_optimizer(), {**state, "version": 3})


# ---- Damaged states, and groups that join later


DAMAGED = [
    ("ratios", [math.nan], "'ratios' must be finite, got nan"),
    ("ratios", [math.inf], "'ratios' must be finite, got inf"),
    ("ratios", [-1.0], "'ratios' must be >= 0, got -1.0"),
    ("ratios", ["x"], "'ratios' must be a number, got 'x'"),
    ("ratios", 1.0, "'ratios' must be a list with one number per parameter group"),
    ("last_epoch", 2.5, "'last_epoch' must be an integer, got 2.5"),
    ("last_epoch", math.nan, "'last_epoch' must be an integer, got nan"),
    ("last_epoch", -1, "'last_epoch' must be >= 0, got -1"),
    ("step_count", 3.5, "'step_count' must be an integer, got 3.5"),
    ("step_count", -2, "'step_count' must be >= 0, got -2"),
    ("weight_decays", [math.nan], "'weight_decays' must be finite, got nan"),
    ("weight_decays", [0.1, 0.1], "'weight_decays' must be a list with one entry for each of the 1 ratios"),
    ("schedules", [F.to_dict(), F.to_dict()], "'schedules' must be a list with one entry for each of the 1 ratios"),
]


@pytest.mark.parametrize(
    ("name", "value", "message"), DAMAGED, ids=[f"{name} {value}"[:30] for name, value, _ in DAMAGED]
)
def test_a_damaged_state_is_refused_and_changes_nothing(name, value, message):
    optimizer = make_optimizer()
    scheduler = ScheduleLR(optimizer, F, scale_weight_decay=True)
    scheduler.step()
    before = copy.deepcopy((scheduler.state_dict(), optimizer.state_dict()))
    state = {**ScheduleLR(make_optimizer(), F, scale_weight_decay=True).state_dict(), name: value}
    with pytest.raises((ValueError, TypeError), match=f"ScheduleLR: {re.escape(message)}"):
        scheduler.load_state_dict(state)
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        ScheduleLR.resume(make_optimizer(), state)
    assert (scheduler.state_dict(), optimizer.state_dict()) == before


def joined(rate, num_steps=4, schedule=F, **settings):
    """An optimizer to which a group was added after some steps, with its rate or with the default one."""
    optimizer = make_optimizer((0.5, 0.05))
    scheduler = ScheduleLR(optimizer, schedule, **settings)
    for _ in range(num_steps):
        optimizer.step()
        scheduler.step()
    own = {} if rate is None else {"lr": rate}
    optimizer.add_param_group({"params": [nn.Parameter(torch.ones(1))], **own})
    return optimizer, scheduler


@pytest.mark.parametrize("num_steps", [0, 1, 4])
@pytest.mark.parametrize("rate", [None, 0.03])
def test_a_group_that_is_added_follows_the_schedule_and_is_saved(rate, num_steps):
    """F warms up, so at its start a ratio of the default rate to the current one would be far too large."""
    optimizer, scheduler = joined(rate, num_steps)
    ratio = 1.0 if rate is None else rate / F(num_steps)
    assert rates_of(optimizer)[2] == (0.5 if rate is None else rate)
    state = saved({"scheduler": scheduler.state_dict(), "optimizer": optimizer.state_dict()})
    fresh = make_optimizer((0.5, 0.05, 0.5))
    fresh.load_state_dict(state["optimizer"])
    made_again, resumed = ScheduleLR(fresh, F), ScheduleLR.resume(fresh, state["scheduler"])
    for each in (scheduler, resumed, made_again):
        assert each.ratios == pytest.approx([1.0, 0.1, ratio])
    for t in range(num_steps, 9):
        wanted = pytest.approx([F(t), F(t) * 0.1, F(t) * ratio])
        assert rates_of(fresh) == wanted
        for each, its in ((optimizer, scheduler), (fresh, resumed)):
            if its is scheduler and t > num_steps:
                assert rates_of(each) == its.get_last_lr() == wanted
            each.step()
            its.step()


def test_an_added_group_can_join_at_once():
    optimizer, scheduler = joined(None)
    scheduler.join_new_groups()
    assert rates_of(optimizer) == scheduler.get_last_lr() == [F(4), F(4) * (0.05 / 0.5), F(4)]


def test_an_added_group_cools_down_and_is_extended_with_the_others():
    optimizer, scheduler = joined(0.03)
    scheduler.extend(ec.constant(20, 0.4), rewarm=None)
    scheduler.cooldown(num_steps=5)
    ratio = 0.03 / F(4)
    for t in range(4, 12):
        assert rates_of(optimizer)[2] == pytest.approx(scheduler.schedule(t) * ratio)
        scheduler.step()


def test_an_added_group_keeps_its_rate_if_each_group_has_its_own_schedule():
    optimizer, scheduler = joined(0.03, schedule=[F, None])
    scheduler.step()
    assert rates_of(optimizer) == [F(5), 0.05, 0.03]
    again = ScheduleLR.resume(make_optimizer((0.5, 0.05, 0.03)), saved(scheduler.state_dict()))
    assert again.get_last_lr() == [F(5), 0.05, 0.03]
    scheduler.extend([F, None, F])
    assert rates_of(optimizer) == [F(5), 0.05, F(5)]


def test_the_weight_decay_of_an_added_group_follows_the_rate():
    optimizer, scheduler = joined(None, scale_weight_decay=True)
    optimizer.param_groups[2]["weight_decay"] = 0.3
    scheduler.step()
    assert optimizer.param_groups[2]["weight_decay"] == pytest.approx(0.3 * F(5) / F.lr)
    assert scheduler.state_dict()["weight_decays"] == [0, 0, 0.3]


def test_a_group_cannot_be_added_in_proportion_to_a_rate_of_zero():
    f = ec.linear(3, 0.5, min_lr=0.0)
    optimizer, scheduler = joined(0.03, num_steps=3, schedule=ec.piecewise(4, [0, 3], [0.5, 0.0]))
    before = len(scheduler.schedules)
    with pytest.raises(
        ValueError, match=r"'lr' must be that of the optimizer for a group that is added while the .* 0"
    ):
        scheduler.step()
    assert len(scheduler.schedules) == len(scheduler.ratios) == before
    optimizer, scheduler = joined(None, num_steps=3, schedule=f)
    scheduler.step()
    assert rates_of(optimizer)[2] == rates_of(optimizer)[0]


def test_a_state_of_fewer_groups_says_what_to_do():
    state = stepped(F, 3, (0.5, 0.05))[1].state_dict()
    _, scheduler = joined(None)
    with pytest.raises(ValueError, match=r"of 3 parameter groups, got 2\. Give the optimizer the groups that it had"):
        scheduler.load_state_dict(state)
