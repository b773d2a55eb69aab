import sys

import pytest
from tests.paper.training.training_job import Blobs, net, settings

from paper.training.log import epoch_log, step_bar
from paper.training.loop import train


def test_the_numbers_of_each_epoch_go_to_tensorboard(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    found = train(net(), Blobs(), settings(), log=tmp_path)
    events = EventAccumulator(str(tmp_path))
    events.Reload()
    written = [(float(event.step), event.value) for event in events.Scalars("train_loss")]
    assert written == [(epoch, pytest.approx(value)) for epoch, value in found.history["train_loss"]]


def test_without_a_folder_or_tensorboard_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    for folder in (None, tmp_path):
        with epoch_log(folder) as log:
            log(1, {"train_loss": 0.5})
    assert list(tmp_path.iterdir()) == []


def test_the_bar_shows_the_steps_done(terminal):
    with step_bar(True, 40) as show:
        show(10)
        show(30)
    line = terminal()
    assert line.startswith("steps ")
    assert " 30/40 " in line


def test_no_bar_is_drawn_when_it_is_not_wanted(terminal):
    with step_bar(False, 40) as show:
        show(10)
    assert terminal() == ""


def test_no_bar_is_drawn_outside_a_terminal(capsys):
    with step_bar(True, 40) as show:
        show(10)
    assert capsys.readouterr().err == ""
