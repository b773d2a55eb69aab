import pytest
from tests.commands.running import run

from eigencurve.commands.options import total_steps, warmup_steps
from eigencurve.spectrum.zoo import ZOO


def complete(words):
    """The words that bash offers after ``eigencurve`` and ``words``."""
    line = f"eigencurve {words}"
    place = str(len(line.split(" ")) - 1)
    request = {"_EIGENCURVE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": place}
    return run(env=request).stdout.split()


def test_the_shell_completes_names_files_and_kinds(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "resnet.npz").write_bytes(b"")
    (tmp_path / "readme.md").write_text("")
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "late.json").write_text("")
    assert complete("sch") == ["schedule"]
    assert complete("schedule res") == [*(n for n in ZOO if n.startswith("res")), "resnet.npz", "results/"]
    assert complete("schedule results/") == ["results/late.json"]
    assert complete("schedule --kind cos") == ["cosine", "cosine_power"]
    assert complete("schedule --code t") == ["torch", "transformers"]
    assert complete("zoo show resnet20") == ["resnet20_cifar10"]
    assert "--steps-per-epoch" in complete("compare --steps")


@pytest.mark.parametrize(
    ("words", "steps"),
    [((30, None, None), 30), ((None, 2, 391), 782), ((None, 0.5, 31), 16)],
)
def test_the_number_of_steps_comes_from_steps_or_epochs(words, steps):
    assert total_steps(*words) == steps


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((None, None, None), "length of the run is missing"),
        ((None, 3, None), "length of the run is missing"),
        ((5, 1, None), "either --steps, or --epochs and --steps-per-epoch, not both"),
        ((5, None, 10), "either --steps, or --epochs and --steps-per-epoch, not both"),
        ((0, None, None), "schedule: 'steps' must be >= 1, got 0"),
        ((None, 0.001, 10), "'epochs' must be 0, or at least half a step, got '0.001 epochs"),
    ],
)
def test_a_missing_double_or_empty_length_is_refused(words, message):
    with pytest.raises(ValueError, match=message):
        total_steps(*words)


@pytest.mark.parametrize(("text", "steps"), [("0", 0), ("500", 500), ("5%", 50), ("0.25%", 3)])
def test_a_warmup_is_a_number_of_steps_or_a_share(text, steps):
    assert warmup_steps(text, 1000) == steps


@pytest.mark.parametrize("text", ["long", "5.5", "%", ""])
def test_another_warmup_is_refused(text):
    with pytest.raises(ValueError, match=f"--warmup must be a number of steps .* got {text!r}"):
        warmup_steps(text, 1000)
