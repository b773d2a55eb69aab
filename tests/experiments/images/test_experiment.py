import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from eigencurve import (
    Spectrum,
    cosine,
    cosine_power,
    eigencurve,
    elastic_step,
    inverse_time,
    multistep,
    prepare,
    step_decay,
)
from eigencurve.experiments.data.augment import crop_and_flip, normalise
from eigencurve.experiments.data.images import ImageSet
from eigencurve.experiments.engine.protocol import search
from eigencurve.experiments.engine.workers import Workers
from eigencurve.experiments.images.experiment import ImageData, ImageExperiment, train_images
from eigencurve.experiments.images.scales import LAPTOP, PAPER, base_settings, ema_grid, final_settings, grids
from eigencurve.experiments.images.task import CifarImages, ImageTask, best_layout
from eigencurve.experiments.models.registry import build
from eigencurve.experiments.training.loop import Part
from eigencurve.experiments.training.schedules import best_schedule, make_schedule, num_intervals
from eigencurve.runs.store import Run, Store, key_of
from eigencurve.theory.quadratic import NoisyQuadratic

SPECTRUM = Spectrum([-0.1, 0.0, 0.01, 0.3, 5.0], [0.2, 0.5, 0.2, 0.09, 0.01])


def images(num, seed=0, classes=10):
    rng = np.random.default_rng(seed)
    labels = torch.from_numpy(rng.integers(0, classes, num))
    pixels = rng.integers(0, 200, (num, 3, 32, 32), dtype=np.uint8)
    pixels[:, 0] += (5 * labels.numpy()[:, None, None]).astype(np.uint8)
    return ImageSet(torch.from_numpy(pixels), labels, classes, "noise")


def data(num_train=40, num_validation=10):
    return ImageData(images(num_train), images(12, seed=1), num_validation)


def settings(**changes):
    usual = {
        "model": "resnet18", "divisor": 16, "split": "test", "epochs": 2, "batch_size": 16, "momentum": 0.0,
        "weight_decay": 5e-4, "evaluate_every": 1, "schedule": "cosine", "lr": 0.1, "min_lr": 0.0,
    }  # fmt: skip
    return usual | changes


class TestTask:
    def task(self):
        return ImageTask(CifarImages(images(21)), CifarImages(images(9, seed=1)), batch_size=8, seed=5)

    def test_an_epoch_has_every_image_once_cropped_and_mirrored_by_its_index(self):
        task, train = self.task(), images(21)
        order = np.random.default_rng((5, 3)).permutation(21)
        batches = list(task.batches(3, 0, Part()))
        assert [batch.size for batch in batches] == [8, 8, 5]
        assert task.steps_per_epoch == 3
        assert sorted(order.tolist()) == list(range(21))
        expected = normalise(crop_and_flip(train.images[order], torch.from_numpy(order), 5, 3))
        assert torch.equal(torch.cat([batch.content[0] for batch in batches]), expected)
        assert torch.equal(torch.cat([batch.content[1] for batch in batches]), train.labels[order])

    def test_it_goes_on_inside_an_epoch_and_epochs_differ(self):
        task = self.task()
        whole, rest = list(task.batches(1, 0, Part())), list(task.batches(1, 2, Part()))
        assert len(rest) == 1
        assert torch.equal(rest[0].content[0], whole[2].content[0])
        assert not torch.equal(next(task.batches(0, 0, Part())).content[1], whole[0].content[1])

    def test_processes_share_every_batch(self):
        task = self.task()
        for whole, *parts in zip(*(task.batches(0, 0, part) for part in (Part(), Part(0, 2), Part(1, 2))), strict=True):
            assert [part.joint_size for part in parts] == [whole.size] * 2
            assert parts[0].size + parts[1].size == whole.size
            assert torch.equal(parts[1].content[0], whole.content[0][1::2])

    def test_what_is_measured(self):
        task, test = self.task(), images(9, seed=1)
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(3072, 10))
        with torch.no_grad():
            found = task.evaluate(model, Part())
            logits = model(normalise(test.images))
            parts = [task.evaluate(model, Part(rank, 2)) for rank in (0, 1)]
        right = [int(row.argmax()) == label for row, label in zip(logits, test.labels.tolist(), strict=True)]
        five = [label in row.argsort(descending=True)[:5] for row, label in zip(logits, test.labels, strict=True)]
        assert found["accuracy"] == (sum(right), 9)
        assert found["top5"] == (sum(five), 9)
        assert found["test_loss"].sum / 9 == pytest.approx(F.cross_entropy(logits, test.labels).item(), rel=1e-5)
        for name, total in found.items():
            assert sum(part[name].sum for part in parts) == pytest.approx(total.sum)
            assert sum(part[name].count for part in parts) == 9


def test_layouts_that_crash_are_not_chosen():
    assert best_layout(build("resnet18", 10, 8)) == torch.channels_last
    assert best_layout(build("resnet18", 10, 16)) == torch.contiguous_format  # strided 1 x 1 from 4 channels
    assert best_layout(nn.Linear(2, 2)) == torch.contiguous_format


class TestSchedules:
    @pytest.mark.parametrize(
        ("more", "expected"),
        [
            ({"schedule": "inverse_time", "min_lr": 0.01}, inverse_time(60, 0.3, 0.01)),
            ({"schedule": "cosine", "min_lr": 0.001}, cosine(60, 0.3, 0.001)),
            ({"schedule": "cosine_power", "min_lr": 0.0, "alpha": 2.0}, cosine_power(60, 0.3, 0.0, 2.0)),
            ({"schedule": "elastic_step", "r": 0.5}, elastic_step(60, 0.3, 0.5)),
            ({"schedule": "step_decay", "intervals": "log T", "factor": 2.0}, step_decay(60, 0.3)),
            ({"schedule": "step_decay", "intervals": 3, "factor": 10.0}, step_decay(60, 0.3, 3, 10.0)),
            ({"schedule": "multistep", "milestones": [2, 4], "factor": 10.0}, multistep(60, 0.3, [20, 40])),
        ],
    )
    def test_settings_name_a_schedule(self, more, expected):
        assert make_schedule({"lr": 0.3, "epochs": 6, **more}, 60, {}) == expected

    def test_eigencurve_is_that_of_the_named_spectrum(self):
        chosen = {
            "schedule": "eigencurve",
            "spectrum": "a",
            "lr": 0.3,
            "min_lr": None,
            "beta": 2.0,
            "weight_decay": 5e-4,
        }
        prepared = prepare(SPECTRUM, 5e-4)
        assert make_schedule(chosen, 60, {"a": SPECTRUM}) == eigencurve(prepared, 60, 0.3)
        assert make_schedule(chosen | {"min_lr": 0.0}, 60, {"a": SPECTRUM})(59) == 0.0

    def test_the_best_one_has_the_best_expected_loss_and_the_given_rate(self):
        prepared = prepare(SPECTRUM, 5e-4)
        found = best_schedule(prepared, 60, 0.3)
        assert found.values().max() == pytest.approx(0.3)
        problem = NoisyQuadratic(prepared)
        top = problem.optimal_schedule(60, 1 / prepared.L).values()
        assert np.allclose(found.values() / 0.3, top / top.max(), atol=1e-9)

    def test_unknown_ones_are_refused(self):
        with pytest.raises(ValueError, match=r"'kind' must be one of 'eigencurve', .*, got 'magic'"):
            make_schedule({"schedule": "magic", "lr": 1.0}, 10, {})

    def test_log_t(self):
        assert num_intervals("log T", 3_910) == math.floor(math.log2(3_910)) == 11
        assert num_intervals(4, 3_910) == 4


class TestGrids:
    def test_the_papers(self):
        found = grids(PAPER, "vgg16", 100, "own", "other")
        assert {name: len(grid) for name, grid in found.items()} == {
            "Inverse Time Decay": 15, "Step Decay": 5, "General Step Decay": 75, "Cosine Decay": 20, "Eigencurve": 25,
            "Elastic Step Decay": 10, "Numerically best": 5, "Eigencurve, reused": 25,
        }  # fmt: skip
        assert len(ema_grid(PAPER, base_settings(PAPER, "vgg16", 100))) == 25
        assert {s["beta"] for s in found["Eigencurve"]} == {1.000005}
        assert {s["beta"] for s in grids(PAPER, "vgg16", 10, "own")["Eigencurve"]} == {2.0}
        assert {s["spectrum"] for s in found["Eigencurve, reused"]} == {"other"}
        assert {s["lr"] for s in found["Cosine Decay"]} == {1.0, 0.6, 0.3, 0.2, 0.1}
        assert {s["min_lr"] for s in found["Eigencurve"]} == {0.01, 0.001, 0.0001, 0.0, None}

    @pytest.mark.parametrize("sizes", [LAPTOP.images, LAPTOP.few_images])
    def test_a_laptop_has_whole_batches(self, sizes):
        assert sizes.train % LAPTOP.batch_size == (sizes.train - sizes.validation) % LAPTOP.batch_size == 0

    def test_a_laptop_gives_every_schedule_the_same_number_of_tries(self):
        found = grids(LAPTOP, "resnet18", 10, "own", "other")
        every = [*found.values(), ema_grid(LAPTOP, base_settings(LAPTOP, "resnet18", 10))]
        assert {len(grid) for grid in every} == {4}
        assert all(len({tuple(sorted(map(str, s.items()))) for s in grid}) == 4 for grid in every)

    @pytest.mark.parametrize("scale", [PAPER, LAPTOP])
    def test_every_setting_makes_a_schedule(self, scale):
        for grid in grids(scale, "resnet18", 10, "own", "own").values():
            for chosen in grid:
                if chosen["schedule"] != "best":
                    schedule = make_schedule(chosen, 400, {"own": SPECTRUM})
                    assert schedule.total_steps == 400
                    assert schedule(0) == pytest.approx(chosen["lr"])


class TestExperiment:
    def test_validation_images_come_from_the_training_images(self):
        whole = data()
        train, held_out = whole.split("validation")
        assert (len(train), len(held_out)) == (30, 10)
        both = torch.cat([train.images.images, held_out.images.images]).flatten(1)
        assert {row.numpy().tobytes() for row in both} == {
            row.numpy().tobytes() for row in whole.train.images.flatten(1)
        }
        everything, test = whole.split("test")
        assert (len(everything), len(test)) == (40, 12)
        assert torch.equal(test.images.images, whole.test.images)

    def test_other_data_are_other_runs(self):
        assert ImageExperiment(data()).name == ImageExperiment(data()).name
        assert ImageExperiment(data(num_validation=5)).name != ImageExperiment(data()).name
        assert ImageExperiment(data(num_train=41)).name != ImageExperiment(data()).name

    def test_a_run_is_a_function_of_settings_and_seed(self):
        experiment = ImageExperiment(data())
        one, again, other = experiment.run([Run(settings(), 0), Run(settings(), 0), Run(settings(), 1)])
        assert one == again
        assert one.metrics["loss"] != other.metrics["loss"]
        assert [epoch for epoch, _ in one.curves["accuracy"]] == [1.0, 2.0]
        assert one.metrics["accuracy"] == 100 * one.curves["accuracy"][-1][1]
        assert one.metrics["loss"] == one.curves["train_loss"][-1][1]

    def test_a_killed_run_goes_on_from_its_checkpoint_and_tidies_up(self, tmp_path, monkeypatch):
        plain = ImageExperiment(data()).run([Run(settings(), 0)])
        experiment = ImageExperiment(data(), folder=tmp_path)
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

    def test_the_winner_has_the_best_validation_accuracy_and_its_trials_are_on_all_images(self, tmp_path):
        store, experiment = Store(tmp_path / "s.sqlite"), ImageExperiment(data())
        grid = [settings(split="validation", epochs=1, lr=lr) for lr in (0.3, 0.01, 0.1)]
        (found,) = search(
            experiment, {"cosine": grid}, (100,), range(2), store, Workers(1, "sequential"), final=final_settings
        )
        scores = [o.metrics["accuracy"] for o in store.outcomes(experiment.name, [Run(s, 100) for s in grid])]
        assert found.chosen_on.mean == max(scores)
        assert found.fresh.settings == {**grid[int(np.argmax(scores))], "split": "test"}
        assert len(found.fresh.values) == 2
        assert len(store.rows(experiment.name)) == 5

    def test_an_explosion_is_a_star_and_loses(self, tmp_path):
        store, experiment = Store(tmp_path / "s.sqlite"), ImageExperiment(data())
        wild = settings(split="validation", epochs=1, schedule="constant", lr=1e30, weight_decay=1.0)
        calm = settings(split="validation", epochs=1)
        workers = Workers(1, "sequential")
        found = search(
            experiment, {"wild": [wild], "both": [wild, calm]}, (100,), (0,), store, workers, final=final_settings
        )
        assert [f.fresh.num_diverged for f in found] == [1, 0]
        assert found[0].fresh.text() == "* all diverged"
        assert found[1].fresh.settings["lr"] == 0.1

    def test_numbers_of_each_epoch_go_to_a_folder_of_the_run(self, tmp_path):
        pytest.importorskip("tensorboard", reason="tensorboard is not installed")
        run = Run(settings(epochs=1), 0)
        experiment = ImageExperiment(data(), log=tmp_path)
        experiment.run([run])
        (folder,) = tmp_path.iterdir()
        assert folder.name == key_of(experiment.name, run)
        assert [path.name.split(".")[0] for path in folder.iterdir()] == ["events"]

    def test_averaged_weights_are_measured(self):
        _, plain = train_images(data(), settings(schedule="constant"), 0, {})
        _, averaged = train_images(data(), settings(schedule="constant", ema_decay=0.9), 0, {})
        assert averaged.history["train_loss"] == plain.history["train_loss"]
        assert averaged.history["test_loss"] != plain.history["test_loss"]

    def test_two_processes_share_a_run(self):
        chosen = settings(epochs=1)
        (one,) = ImageExperiment(data()).run([Run(chosen, 0)])
        (two,) = ImageExperiment(data(), num_processes=2).run([Run(chosen, 0)])
        # Batch norm sees half of each batch, so only the order of magnitude is the same; the counts are.
        assert two.metrics["loss"] == pytest.approx(one.metrics["loss"], rel=0.3)
        assert two.metrics["accuracy"] * 12 / 100 == pytest.approx(round(two.metrics["accuracy"] * 12 / 100))


def _interrupted(stop):
    plain = ImageTask.loss

    def loss(self, model, batch):
        stop()
        return plain(self, model, batch)

    return loss
