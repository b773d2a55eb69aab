import numpy as np
import pytest
import torch
from tests.paper.images.examples import data, settings

from eigencurve.runs.store import Run, Store, key_of
from paper.engine.protocol import search
from paper.engine.request import Workers
from paper.images.experiment import image_experiment, train_images
from paper.images.scales import final_settings
from paper.images.task import ImageTask


def test_validation_images_come_from_the_training_images():
    whole = data()
    train, held_out = whole.split("validation")
    assert (len(train), len(held_out)) == (30, 10)
    both = torch.cat([train.images.images, held_out.images.images]).flatten(1)
    assert {row.numpy().tobytes() for row in both} == {row.numpy().tobytes() for row in whole.train.images.flatten(1)}
    everything, test = whole.split("test")
    assert (len(everything), len(test)) == (40, 12)
    assert torch.equal(test.images.images, whole.test.images)


def test_other_data_are_other_runs():
    assert image_experiment(data()).name == image_experiment(data()).name
    assert image_experiment(data(num_validation=5)).name != image_experiment(data()).name
    assert image_experiment(data(num_train=41)).name != image_experiment(data()).name


def test_a_run_is_a_function_of_settings_and_seed():
    experiment = image_experiment(data())
    one, again, other = experiment.run([Run(settings(), 0), Run(settings(), 0), Run(settings(), 1)])
    assert one == again
    assert one.metrics["loss"] != other.metrics["loss"]
    assert [epoch for epoch, _ in one.curves["accuracy"]] == [1.0, 2.0]
    assert one.metrics["accuracy"] == 100 * one.curves["accuracy"][-1][1]
    assert one.metrics["loss"] == one.curves["train_loss"][-1][1]


def test_a_killed_run_goes_on_from_its_checkpoint_and_tidies_up(tmp_path, monkeypatch):
    plain = image_experiment(data()).run([Run(settings(), 0)])
    experiment = image_experiment(data(), folder=tmp_path)
    seen = []

    class Stop(KeyboardInterrupt):
        pass

    def stop(*_):
        seen.append(1)
        if len(seen) == 5:  # in the second epoch
            raise Stop

    with monkeypatch.context() as patch:
        patch.setattr(ImageTask, "loss", _interrupted(stop))
        with pytest.raises(Stop):
            experiment.run([Run(settings(), 0)])
    assert len(list(tmp_path.glob("*.pt"))) == 1
    assert experiment.run([Run(settings(), 0)]) == plain
    assert not list(tmp_path.iterdir())


def test_the_winner_has_the_best_validation_accuracy_and_its_trials_are_on_all_images(tmp_path):
    store, experiment = Store(tmp_path / "s.sqlite"), image_experiment(data())
    grid = [settings(split="validation", epochs=1, lr=lr) for lr in (0.3, 0.01, 0.1)]
    (found,) = search(
        experiment, {"cosine": grid}, (100,), range(2), store, Workers(1, "sequential"), final=final_settings
    )
    scores = [o.metrics["accuracy"] for o in store.outcomes(experiment.name, [Run(s, 100) for s in grid])]
    assert found.chosen_on.mean == max(scores)
    assert found.fresh.settings == {**grid[int(np.argmax(scores))], "split": "test"}
    assert len(found.fresh.values) == 2
    assert len(store.rows(experiment.name)) == 5


def test_an_explosion_is_a_star_and_loses(tmp_path):
    store, experiment = Store(tmp_path / "s.sqlite"), image_experiment(data())
    wild = settings(split="validation", epochs=1, schedule="constant", lr=1e30, weight_decay=1.0)
    calm = settings(split="validation", epochs=1)
    workers = Workers(1, "sequential")
    found = search(
        experiment, {"wild": [wild], "both": [wild, calm]}, (100,), (0,), store, workers, final=final_settings
    )
    assert [f.fresh.num_diverged for f in found] == [1, 0]
    assert found[0].fresh.text() == "* all diverged"
    assert found[1].fresh.settings["lr"] == 0.1


def test_numbers_of_each_epoch_go_to_a_folder_of_the_run(tmp_path):
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    run = Run(settings(epochs=1), 0)
    experiment = image_experiment(data(), log=tmp_path)
    experiment.run([run])
    (folder,) = tmp_path.iterdir()
    assert folder.name == key_of(experiment.name, run)
    assert [path.name.split(".")[0] for path in folder.iterdir()] == ["events"]


def test_averaged_weights_are_measured():
    _, plain = train_images(data(), settings(schedule="constant"), 0, {})
    _, averaged = train_images(data(), settings(schedule="constant", ema_decay=0.9), 0, {})
    assert averaged.history["train_loss"] == plain.history["train_loss"]
    assert averaged.history["test_loss"] != plain.history["test_loss"]


def test_two_processes_share_a_run():
    chosen = settings(epochs=1)
    (one,) = image_experiment(data()).run([Run(chosen, 0)])
    (two,) = image_experiment(data(), num_processes=2).run([Run(chosen, 0)])
    # Batch norm sees half of each batch, so only the order of magnitude is the same; the counts are.
    assert two.metrics["loss"] == pytest.approx(one.metrics["loss"], rel=0.3)
    assert two.metrics["accuracy"] * 12 / 100 == pytest.approx(round(two.metrics["accuracy"] * 12 / 100))


def _interrupted(stop):
    plain = ImageTask.loss

    def loss(self, model, batch):
        stop()
        return plain(self, model, batch)

    return loss
