import pytest

pytest.importorskip("accelerate")

import torch
from tests.adapters.contract import LR
from tests.adapters.drivers.accelerate import Loop

import eigencurve as ec
from eigencurve.adapters.accelerate import prepare_schedule

pytestmark = pytest.mark.slow


def test_preparing_it_again_changes_nothing():
    loop = Loop(ec.linear(4, LR))
    assert loop.accelerator.prepare(loop.scheduler) is loop.scheduler
    assert loop.run(4).first() == ec.linear(4, LR).values().tolist()


def test_the_optimizer_may_be_prepared_before_or_after():
    loop = Loop(ec.linear(4, LR))
    bare = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=LR)
    early = prepare_schedule(loop.accelerator, bare, ec.linear(4, LR))
    optimizer = loop.accelerator.prepare(bare)
    early.step()
    assert optimizer.param_groups[0]["lr"] == ec.linear(4, LR)(1)


def test_an_epoch_that_accumulation_does_not_divide_ends_with_an_update():
    loop = Loop(ec.linear(6, LR), accumulation=2)
    loader = loop.accelerator.prepare(torch.utils.data.DataLoader(torch.full((5, 1), 0.1)))
    for _ in range(2):
        for batch in loader:
            with loop.accelerator.accumulate(loop.model):
                loop.accelerator.backward(loop.model(batch.mean()))
                loop.optimizer.step()
                loop.scheduler.step()
                loop.optimizer.zero_grad()
    assert loop.first() == ec.linear(6, LR).values().tolist()


def test_hurt_3_another_horizon_at_resume_is_refused(tmp_path):
    Loop(ec.cosine(6, LR)).run(3).accelerator.save_state(tmp_path)
    with pytest.raises(ValueError, match=r"total_steps=12.*total_steps=6.*on_resume='extend'"):
        Loop(ec.cosine(12, LR)).accelerator.load_state(tmp_path)


def test_hurt_6_the_saved_state_loads_with_weights_only(tmp_path):
    Loop(ec.cosine(6, LR)).run(3).accelerator.save_state(tmp_path)
    assert torch.load(tmp_path / "scheduler.bin", weights_only=True)["last_epoch"] == 3


def test_a_run_can_be_cooled_down():
    loop = Loop(ec.constant(100, LR)).run(3)
    loop.scheduler.cooldown(num_steps=4, shape="1-sqrt")
    assert loop.run(4).first() == ec.cooldown(ec.constant(100, LR), 3, 4, shape="1-sqrt").values().tolist()


def test_a_schedule_of_another_length_is_reported():
    loop = Loop(ec.linear(4, LR))
    with pytest.warns(UserWarning, match=r"prepare_schedule: the schedule has 4 steps, but the trainer takes 6"):
        prepare_schedule(loop.accelerator, loop.optimizer, ec.linear(4, LR), num_steps=6)


def test_each_group_has_its_own_schedule():
    loop = Loop(ec.linear(4, LR))
    bare = torch.optim.AdamW(
        [{"params": [torch.nn.Parameter(torch.ones(1))]} for _ in range(2)], lr=LR, weight_decay=0.1
    )
    f, g = ec.linear(4, LR), ec.cosine(4, 0.01)
    scheduler = prepare_schedule(loop.accelerator, bare, [f, g], scale_weight_decay=True)
    bare.step()
    scheduler.step()
    assert scheduler.get_last_lr() == [f(1), g(1)]
    assert bare.param_groups[0]["weight_decay"] == pytest.approx(0.075)


def test_bad_arguments():
    with pytest.raises(TypeError, match=r"'accelerator' must be an accelerate.Accelerator"):
        prepare_schedule(None, None, ec.cosine(4, LR))
