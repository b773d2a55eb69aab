from eigencurve.runs import Outcome, Run, key_of
from paper.training.runs import TrainingRuns


def counted(run, key, checkpoint):
    """Write the number of calls to the checkpoint; the third one finishes."""
    calls = 1 + (int(checkpoint.read_text()) if checkpoint.exists() else 0)
    checkpoint.write_text(str(calls))
    if calls < 3:
        raise KeyboardInterrupt
    return Outcome({"calls": calls, "seed": run.seed}, curve=((0.0, float(len(key))),))


def test_a_run_resumes_from_its_checkpoint_which_is_removed_at_the_end(tmp_path):
    experiment, run = TrainingRuns("toy", counted, "calls", minimise=True, folder=tmp_path), Run({"epochs": 1}, 5)
    for _ in range(2):
        try:
            experiment.run([run])
        except KeyboardInterrupt:
            assert [path.stem for path in tmp_path.iterdir()] == [key_of("toy", run)]
    (found,) = experiment.run([run])
    assert found.metrics == {"calls": 3, "seed": 5}
    assert list(tmp_path.iterdir()) == []


def test_every_run_is_by_itself_and_the_longest_is_first():
    experiment = TrainingRuns("toy", counted, "calls", minimise=True)
    short, long = Run({"epochs": 1}, 0), Run({"epochs": 9}, 0)
    assert experiment.batches([short, long]) == [[long], [short]]
