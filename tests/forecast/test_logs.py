import contextlib
import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from tests.reference.events import event, event_file, scalar

import eigencurve as ec
from eigencurve import ArgumentWarning
from eigencurve._check import Arg
from eigencurve.forecast import LoggedRun, load_run, logs
from eigencurve.forecast.formats import log as log_module
from paper.data.curves import described_schedule

T = 200
SCHEDULE = ec.cosine(T, 0.1)
STEPS = np.arange(0, T + 1, 10)
# A chord over 10 of 200 steps is this far from a cosine: its second derivative times 10²/8.
CHORD = 0.1 * np.pi**2 / 2 / T**2 * 10**2 / 8 * 1.05
NO_RATE = "step,loss\n" + "".join(f"{s},2\n" for s in STEPS)
ALL_ZERO = "step,lr,loss\n" + "".join(f"{s},0,2\n" for s in STEPS)
LOSSES = np.round(2 + np.exp(-STEPS / 50), 4)


def rows(header=("step", "lr", "loss"), steps=STEPS, losses=LOSSES, separator=","):
    lines = [
        separator.join(map(repr, (int(s), float(SCHEDULE(int(s))), float(v))))
        for s, v in zip(steps, losses, strict=True)
    ]
    return "\n".join([separator.join(header), *lines]) + "\n"


@pytest.fixture
def written(tmp_path):
    def write(content, name="run.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def test_a_plain_csv(written):
    run = load_run(written(rows()))
    assert isinstance(run, LoggedRun)
    assert_array_equal(run.steps, STEPS)
    assert_array_equal(run.losses, LOSSES)
    assert (run.name, run.metric, run.total_steps) == ("run", "loss", T)
    assert_allclose(run.rates, SCHEDULE.values(), atol=CHORD)
    assert_array_equal(run.rates[::10], SCHEDULE(np.arange(0, T, 10)))


@pytest.mark.parametrize("name", ["run.csv", "run.txt", "run", "run.json"])
@pytest.mark.parametrize("content", [rows(separator=";"), "\ufeff" + rows(), rows().replace("\n", "\r\n")])
def test_the_content_decides_not_the_name(written, name, content):
    assert_array_equal(load_run(written(content, name)).losses, LOSSES)


def test_the_order_of_updates_and_losses_is_that_of_the_schedule(written):
    """The rate at step s is that of the next update, so a drop logged at step 100 does not act on the loss there."""
    drop = ec.multistep(T, 0.1, [100])
    text = "step,lr,loss\n" + "".join(
        f"{s},{drop(s)},{v}\n" for s, v in zip(range(T), np.linspace(3, 2, T), strict=True)
    )
    assert_array_equal(load_run(written(text)).rates, drop.values()[: T - 1])


def test_a_given_schedule_replaces_the_logged_rates(written):
    path = written(rows())
    assert load_run(path, schedule=ec.constant(T, 0.3)).schedule == ec.constant(T, 0.3)
    assert load_run(written(NO_RATE), schedule=SCHEDULE).schedule == SCHEDULE
    with pytest.raises(ValueError, match=r"'schedule' must be at least as long as the log, 200 steps"):
        load_run(path, schedule=ec.constant(T - 1, 0.3))


@pytest.mark.parametrize("name", ["val_loss", "eval_loss", "valid/loss", "loss/validation", "test_loss"])
def test_the_loss_of_the_validation_is_the_default(written, name):
    path = written(f"step,lr,loss,{name}\n" + "".join(f"{s},0.1,3,{v}\n" for s, v in zip(STEPS, LOSSES, strict=True)))
    run = load_run(path)
    assert_array_equal(run.losses, LOSSES)
    assert run.metric == name
    assert load_run(path, loss="loss").metric == "loss"
    with pytest.raises(ValueError, match=r"no column 'perplexity' with values; the columns are 'step', 'lr', 'loss', "):
        load_run(path, loss="perplexity")


@pytest.mark.parametrize("names", [("train_loss_step", "train_loss_epoch"), ("val_loss", "test_loss")])
def test_a_loss_is_not_guessed(written, names):
    rows = "".join(f"{s},0.1,3,{v}\n" for s, v in zip(STEPS, LOSSES, strict=True))
    with pytest.raises(ValueError, match=rf"more than one loss: '{names[0]}', '{names[1]}'"):
        load_run(written(f"step,lr,{','.join(names)}\n" + rows))


def test_too_few_losses_of_the_validation_name_the_other_loss(written):
    rows = "".join(f"{s},0.1,{v},{v if s % 50 == 0 else ''}\n" for s, v in zip(STEPS, LOSSES, strict=True))
    with pytest.raises(ValueError, match=r"'eval_loss' has 5 values, .* Or pass 'loss' with another loss: 'loss'\."):
        load_run(written("step,lr,loss,eval_loss\n" + rows))


def test_an_output_folder_of_transformers(tmp_path):
    for last in (50, 100, 200):
        pairs = [(int(s), float(v)) for s, v in zip(STEPS, LOSSES, strict=True) if 0 < s <= last]
        history = [{"step": s, "learning_rate": 0.1, "loss": v} for s, v in pairs]
        folder = tmp_path / "out" / f"checkpoint-{last}"
        folder.mkdir(parents=True)
        (folder / "trainer_state.json").write_text(json.dumps({"log_history": history}))
    (tmp_path / "out" / "checkpoint-best").mkdir()
    run = load_run(tmp_path / "out")
    assert (run.steps[-1], run.name) == (200, "out")


def test_any_column_can_be_the_loss(written):
    path = written(rows(("step", "lr", "Perplexity")))
    assert_array_equal(load_run(path, loss="perplexity").losses, LOSSES)
    with pytest.raises(ValueError, match=r"no column of losses; the columns are 'step', 'lr', 'Perplexity'"):
        load_run(path)


def test_several_rates(written):
    def text(second):
        return "step,lr-SGD/pg1,lr-SGD/pg2,loss\n" + "".join(
            f"{s},{SCHEDULE(int(s))},{second(int(s))},2\n" for s in STEPS
        )

    path = written(text(lambda s: 0.1 * SCHEDULE(s)))
    assert load_run(path).peak_lr == 0.1
    assert load_run(path, lr="lr-SGD/pg2").peak_lr == pytest.approx(0.01)
    path = written(text(lambda s: 0.1 - s / 2e4))
    with pytest.raises(ValueError, match=r"more than one learning rate: 'lr-SGD/pg1', 'lr-SGD/pg2'"):
        load_run(path)
    with pytest.raises(ValueError, match=r"no column 'lr' with values"):
        load_run(path, lr="lr")


def test_a_repeated_row_counts_once(written):
    lines = rows().splitlines(keepends=True)
    text = "".join([lines[0], *(line + line for line in lines[1:])])
    assert_array_equal(load_run(written(text)).losses, LOSSES)


def test_a_resumed_run_replaces_what_it_overlaps(written):
    lines = rows().splitlines(keepends=True)
    again = [f"{s},{SCHEDULE(int(s))},9.0\n" for s in STEPS[8:12]]
    path = written("".join([*lines[:12], *again]))
    with pytest.raises(ValueError, match=r"line 13 goes back from step 100 to 80") as error:
        load_run(path)
    assert Arg("resumed") in error.value.remedy
    run = load_run(path, resumed=True)
    assert_array_equal(run.steps, STEPS[:12])
    assert_array_equal(run.losses, [*LOSSES[:8], 9, 9, 9, 9])


def test_a_stray_row_does_not_pass_for_a_resumed_run(written):
    text = "step,lr,loss\n" + "".join(f"{s},0.1,{2 + 1 / s:.4f}\n" for s in range(10, 2001, 10))
    path = written(text + "110,0.1,2.01\n")
    with pytest.raises(ValueError, match=r"line 202 goes back from step 2000 to 110, .* replaces 189 of the 200 steps"):
        load_run(path, resumed=True)
    lines = text.splitlines(keepends=True)
    path = written("".join([*lines[:101], "910,0.1,2.0\n", *lines[101:]]))
    with pytest.warns(ArgumentWarning, match=r"line 102 goes back from step 1000 to 910, .* replaces 9 of the"):
        run = load_run(path, resumed=True)
    assert len(run) == 191


LAST = "{},0.1,2.3456"


@pytest.mark.parametrize("cut", range(1, len(LAST.format(210))))
def test_a_last_line_that_is_cut_is_left_out(written, cut):
    text = "step,lr,loss\n" + "".join(LAST.format(s) + "\n" for s in range(0, 201, 10)) + LAST.format(210)
    path = written(text[:-cut])
    with pytest.warns(ArgumentWarning, match=r"line 23 has no line end, so it may be cut"):
        run = load_run(path)
    assert_array_equal(run.losses, [2.3456] * 21)


@pytest.mark.filterwarnings("error")
def test_a_last_line_that_is_complete_counts_without_its_line_end(written):
    assert_array_equal(load_run(written(rows()[:-1])).steps, STEPS)
    text = "step,lr,loss\r\n" + "".join(LAST.format(s) + "\r\n" for s in range(0, 201, 10))
    assert len(load_run(written(text[:-1]))) == 21  # between \r and \n


@pytest.mark.parametrize("cut", [1, 2, 5, 20])
def test_a_last_entry_that_is_cut_is_left_out(written, cut):
    entries = [json.dumps({"step": s, "lr": 0.1, "loss": 2.3456}) for s in range(0, 210, 10)]
    path = written("\n".join(entries)[:-cut], "log.jsonl")
    with pytest.warns(ArgumentWarning, match=r"line 21 has no line end, so it may be cut"):
        assert len(load_run(path)) == 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(load_run(written("\n".join(entries), "log.jsonl"))) == 21


def test_the_last_step(written):
    lines = rows().splitlines(keepends=True)
    path = written("".join(lines) + "".join(f"{s},0.01,nan\n" for s in (210, 220)))
    with pytest.raises(ValueError, match=r"'loss' is nan at step 210 \(line 23\)") as error:
        load_run(path)
    assert Arg("last_step") in error.value.remedy
    assert_array_equal(load_run(path, last_step=200).steps, STEPS)
    run = load_run(path, last_step=105)
    assert (run.steps[-1], run.total_steps) == (100, 100)


def test_assumptions_about_the_rate_are_warnings_that_name_arguments(written):
    late = written(rows(steps=STEPS[5:], losses=LOSSES[5:]))
    with pytest.warns(ArgumentWarning, match=r"run.csv: no learning rate is logged before step 50 \(25.0%") as caught:
        load_run(late)
    assert {Arg("warmup_steps"), Arg("schedule")} < set(caught[0].message.words)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run = load_run(late, warmup_steps=20)
        load_run(late, schedule=SCHEDULE)
    assert_allclose(run.rates[:20], SCHEDULE(50) * np.arange(1, 21) / 21)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("", "the file is empty"),
        (b"\xef\xbb\xbf \n", "the file is empty"),
        (b"\x80\x02}q\x00.", "byte 0 is not UTF-8 text"),
        (rows().encode("utf-16"), "is not UTF-8 text"),
        ("step,lr,loss\n", r"no column of losses; the columns are 'step', 'lr', 'loss'"),
        (NO_RATE, r"no learning rate; the columns are 'step', 'loss'"),
        (rows(steps=STEPS[:7], losses=LOSSES[:7]), r"'loss' has 7 values, but a fit needs 8 or more"),
        (rows() + rows().split("\n", 1)[1], r"line 23 goes back from step 200 to 0"),
        (rows() + rows(), r"line 23 repeats the header"),
        (rows() + "200,0.1,99\n", r"'loss' is both 2.0183 and 99 at step 200 \(line 23\)"),
        (rows() + "210,0.1,inf\n", r"'loss' is inf at step 210 \(line 23\)"),
        (rows() + "210,-0.1,2\n", r"the learning rate at line 23 is -0.1, but must be finite and >= 0"),
        (rows() + "210,nan,2\n", r"the learning rate at line 23 is nan"),
        (rows() + "2e12,0.1,2\n", r"the last step of 'loss' is 2,000,000,000,000"),
        (rows().replace("\n0,", "\n-10,"), r"line 2 has the step -10, but steps begin at 0"),
        (ALL_ZERO, r"every logged learning rate is 0"),
        ('{"log_history": []}', r"no column of losses; the columns are none"),
    ],
)  # fmt: skip
def test_a_bad_log_is_one_clear_line(written, content, match, tmp_path):
    path = written(content)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=match) as caught:
        load_run(path)
    assert str(caught.value).startswith(f"load_run: {path}: ")
    assert "\n" not in str(caught.value)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_bad_arguments(written, tmp_path):
    path = written(rows())
    with pytest.raises(FileNotFoundError):
        load_run(tmp_path / "none.csv")
    with pytest.raises(ValueError, match=r"load_run: 'warmup_steps' must be >= 0, got -1"):
        load_run(path, warmup_steps=-1)
    with pytest.raises(TypeError, match=r"load_run: 'last_step' must be an integer"):
        load_run(path, last_step=1.5)
    with pytest.raises(ValueError, match=r"no run 'b'; the runs are none"):
        load_run(path, run="b")
    with pytest.raises(ValueError, match=r"the file holds one run, but the run 'b' was asked for"):
        load_run(written('{"log_history": []}', "trainer_state.json"), run="b")


def test_large_files_are_refused_before_they_are_read(written, monkeypatch):
    path = written(rows())
    monkeypatch.setattr(logs, "MAX_BYTES", 100)
    with pytest.raises(ValueError, match=r"the file has \d+ bytes, more than 100"):
        load_run(path)
    monkeypatch.undo()
    monkeypatch.setattr(log_module, "MAX_ROWS", 10)
    with pytest.raises(ValueError, match=r"the log has more than 10 rows"):
        load_run(path)


LINES = st.lists(st.text('step,lrlos\n0123456789.-eE{}[]:" nainf;\t', max_size=30), max_size=12)
NUMBERS = st.one_of(st.integers(-5, 40), st.floats(), st.sampled_from(["", "nan", "1e400", "x", 10**30]))


@given(
    st.one_of(
        st.binary(max_size=200),
        LINES.map(lambda lines: "\n".join(["step,lr,loss", *lines]).encode()),
        LINES.map(lambda lines: ("{" + "\n{".join(lines)).encode()),
        st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=5, max_size=15).map(
            lambda cells: "\n".join(["step,lr,loss", *(",".join(map(str, row)) for row in cells)]).encode()
        ),
    )
)
@pytest.mark.filterwarnings("ignore::eigencurve.ArgumentWarning")
def test_any_bytes_raise_nothing_but_valueerror(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "any"
    path.write_bytes(content)
    with contextlib.suppress(ValueError):
        load_run(path)


@given(
    steps=st.lists(st.integers(0, 500), min_size=8, max_size=30, unique=True).map(sorted),
    data=st.data(),
    resumed=st.booleans(),
)
@pytest.mark.filterwarnings("ignore::eigencurve.ArgumentWarning")
def test_any_valid_log_is_read_back(tmp_path_factory, steps, data, resumed):
    values = st.lists(st.floats(0.001, 1e3), min_size=len(steps), max_size=len(steps))
    losses, rates = data.draw(values), data.draw(values)
    path = tmp_path_factory.getbasetemp() / "valid.csv"
    path.write_text("step,lr,loss\n" + "".join(f"{s},{r},{v}\n" for s, r, v in zip(steps, rates, losses, strict=True)))
    run = load_run(path, resumed=resumed)
    assert_array_equal(run.steps, steps)
    assert_array_equal(run.losses, losses)
    assert_array_equal(run.schedule(np.array(steps[:-1])), rates[:-1])


WANDB_RUNS = (
    "Step,a - train/loss,a - train/loss__MIN,a - train/loss__MAX,a - train/lr,b - train/loss,b - train/lr\n"
    + "".join(f"{s},{v},{v},{v},{SCHEDULE(int(s))},{2 * v},0.5\n" for s, v in zip(STEPS, LOSSES, strict=True))
)


def test_an_export_of_weights_and_biases(written):
    path = written(WANDB_RUNS)
    with pytest.raises(ValueError, match=r"the file holds 2 runs: 'a', 'b'"):
        load_run(path)
    run = load_run(path, run="a")
    assert (run.name, run.metric) == ("a", "train/loss")
    assert_array_equal(run.losses, LOSSES)
    assert_array_equal(load_run(path, run="b").losses, 2 * LOSSES)


def tensorboard(steps, factor=1.0):
    return event_file(
        *(
            event(int(s), scalar("train/loss", factor * v), scalar("train/learning_rate", SCHEDULE(int(s))))
            for s, v in zip(STEPS, LOSSES, strict=True)
            if s in steps
        )
    )


def test_event_files_and_their_folders(written, tmp_path):
    path = written(tensorboard(STEPS), "runs/a/events.out.tfevents.100.host")
    for place in (path, path.parent, tmp_path / "runs"):
        run = load_run(place)
        assert_array_equal(run.losses, LOSSES.astype(np.float32))
        assert_allclose(run.rates, SCHEDULE.values(), atol=CHORD)
    assert load_run(path.parent).name == "a"
    written(tensorboard(STEPS, 2.0), "runs/b/events.out.tfevents.100.host")
    with pytest.raises(ValueError, match=r"the folder holds 2 runs: 'a', 'b'"):
        load_run(tmp_path / "runs")
    assert_allclose(load_run(tmp_path / "runs", run="b").losses, 2 * LOSSES, rtol=1e-6)
    with pytest.raises(ValueError, match=r"no event files of a run 'c'; the runs are 'a', 'b'"):
        load_run(tmp_path / "runs", run="c")


def test_a_resumed_run_writes_a_second_event_file(written):
    written(tensorboard(STEPS[:12]), "a/events.out.tfevents.100.host")
    path = written(tensorboard(STEPS[12:]), "a/events.out.tfevents.200.host")
    assert_array_equal(load_run(path.parent).steps, STEPS)
    written(tensorboard(STEPS[8:], 3.0), "a/events.out.tfevents.300.host")
    with pytest.raises(ValueError, match=r"event \d+ goes back from step 200 to 80"):
        load_run(path.parent)
    run = load_run(path.parent, resumed=True)
    assert_array_equal(run.steps, STEPS)
    assert_allclose(run.losses, [*LOSSES[:8], *(3 * LOSSES[8:])], rtol=1e-6)


def test_folders_of_other_trainers(written, tmp_path):
    with pytest.raises(ValueError, match=r"the folder holds no log \(metrics.csv, trainer_state.json or event files"):
        load_run(tmp_path)
    path = written(rows(), "version_0/metrics.csv")
    assert load_run(path.parent).name == load_run(path).name == "version_0"
    written(tensorboard(STEPS, 2.0), "version_0/events.out.tfevents.100.host")
    assert_array_equal(load_run(path.parent).losses, LOSSES)
    assert_allclose(load_run(path.parent, run=".").losses, 2 * LOSSES, rtol=1e-6)


def test_lightning(tmp_path):
    pytest.importorskip("lightning", reason="lightning is not installed")
    import torch
    from lightning.pytorch.callbacks import LearningRateMonitor
    from lightning.pytorch.loggers import CSVLogger
    from tests.adapters.drivers.lightning import Module, fit

    class Logging(Module):
        def training_step(self, batch, index):
            loss = super().training_step(batch, index)
            self.losses = [*getattr(self, "losses", []), loss.item()]
            self.log("train_loss", loss)
            return loss

        def validation_step(self, batch, index):
            self.log("val_loss", super().training_step(batch, index))

    schedule = ec.warmup(ec.cosine(35, 0.1), 5)
    module = Logging(schedule)
    val = torch.utils.data.DataLoader(torch.full((8, 1), 0.1), batch_size=2)
    module.val_dataloader = lambda: val
    options = {"logger": CSVLogger(tmp_path), "log_every_n_steps": 1, "callbacks": [LearningRateMonitor("step")]}
    fit(module, 40, **options)
    folder = next(tmp_path.rglob("metrics.csv")).parent
    assert load_run(folder).metric == "val_loss"
    run = load_run(folder, loss="train_loss")
    assert_array_equal(run.steps, np.arange(40))
    assert_allclose(run.losses, module.losses, rtol=1e-6)
    # The loss of step s was computed with s completed updates, whose rates are the first s of the run.
    assert_allclose(run.rates, module.first()[:39], rtol=1e-6)
    validation = load_run(folder, loss="val_loss")
    assert len(validation) == 10
    assert_array_equal(validation.steps, np.arange(3, 40, 4))


@pytest.mark.parametrize("every", [1, 2])
def test_transformers(tmp_path, every):
    pytest.importorskip("transformers", reason="transformers is not installed")
    import torch
    import transformers
    from tests.adapters.drivers.transformers import arguments, sentences, tiny_gpt2
    from tests.adapters.recording import recorded

    settings = arguments(
        tmp_path, 24, logging_strategy="steps", logging_steps=every, eval_strategy="steps", eval_steps=3, save_steps=24,
        save_strategy="steps", lr_scheduler_type="linear", warmup_steps=8,
    )  # fmt: skip
    model = tiny_gpt2()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    seen = recorded(optimizer)
    trainer = transformers.Trainer(
        model, settings, train_dataset=sentences(), eval_dataset=sentences(4), optimizers=(optimizer, None)
    )
    trainer.train()
    path = tmp_path / "checkpoint-24" / "trainer_state.json"
    used = [rates[0] for rates in seen]
    run = load_run(path, loss="loss")
    assert_array_equal(run.steps, np.arange(every, 25, every))
    assert_allclose(run.rates, used, atol=1e-9 if every == 1 else 0.1 / 8)
    evaluated = load_run(path.parent, loss="eval_loss")
    assert_array_equal(evaluated.steps, np.arange(3, 25, 3))
    assert evaluated.name == "checkpoint-24"
    history = json.loads(path.read_text())["log_history"]
    assert evaluated.losses.tolist() == [entry["eval_loss"] for entry in history if "eval_loss" in entry]


def test_published_runs(data_path):
    """Every run loads with the schedule that its publication describes, without a warning if its warmup is given."""
    index = data_path("curves/index.json")
    entries = json.loads(index.read_text())
    assert len(entries) == 38
    for entry in entries:
        path, warm = index.parent / entry["file"], entry["warmup_steps"]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            run = load_run(path, warmup_steps=warm)
        t = np.arange(run.total_steps)
        rates = np.where(t < warm, entry["peak_lr"] * t / max(warm, 1), described_schedule(entry)(t))
        # A drop between two rows is off by up to half an interval of the log, 64 steps; all else is far closer.
        assert_allclose(run.rates.sum(), rates.sum(), rtol=4e-3, err_msg=entry["file"])
        off = np.abs(run.rates - rates) / entry["peak_lr"]
        assert (off > 0.03).sum() <= 128, entry["file"]
        # The library's exponential decay reaches its end one step before the published one.
        assert_allclose(run.schedule(run.steps[:-1]), rates[run.steps[:-1]], rtol=1e-3, err_msg=entry["file"])
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            load_run(path)
        assert len(caught) == (run.steps[0] > 0.01 * run.total_steps), entry["file"]
