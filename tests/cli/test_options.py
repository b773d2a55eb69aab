import json

import pytest
from tests.cli.running import run
from typer.testing import CliRunner

from eigencurve.cli import app
from eigencurve.cli.options import steps_or_share, total_steps, warmup_steps, whole_number
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
        ((0, None, None), "'steps' must be >= 1, got 0"),
        ((None, 0.001, 10), "'epochs' must be 0, or at least half a step, got '0.001 epochs"),
    ],
)
def test_a_missing_double_or_empty_length_is_refused(words, message):
    with pytest.raises(ValueError, match=message):
        total_steps(*words)


@pytest.mark.parametrize(("text", "steps"), [("0", 0), ("500", 500), ("1e2", 100), ("5%", 50), ("0.25%", 3)])
def test_a_warmup_is_a_number_of_steps_or_a_share(text, steps):
    assert warmup_steps(text, 1000) == steps


@pytest.mark.parametrize("text", ["long", "5.5", "%", "", "120%", "-5%", "1e999"])
def test_another_warmup_is_refused(text):
    with pytest.raises(ValueError, match=f"--warmup must be a number of steps .* got {text!r}"):
        warmup_steps(text, 1000)


@pytest.mark.parametrize(("text", "number"), [("39100", 39_100), ("1e4", 10_000), ("39_100", 39_100), ("2.5e3", 2_500)])
def test_numbers_of_steps_are_read_as_people_type_them(text, number):
    assert whole_number(text) == number
    printed = run("schedule", "--kind", "linear", "--steps", text, "--lr", "1", "--json").stdout
    assert json.loads(printed)["total_steps"] == number


@pytest.mark.parametrize("text", ["many", "1.5", "1e-3", "nan", "inf", "1e999999999", ""])
def test_other_numbers_of_steps_are_refused(text):
    result = CliRunner().invoke(app, ["schedule", "--kind", "linear", f"--steps={text}"])
    assert result.exit_code == 2
    assert f"Invalid value for '--steps': {text!r} is not a whole number such as 39100 or 1e4." in result.stderr


def test_an_option_that_is_too_short_is_named():
    with pytest.raises(ValueError, match="'decay_steps' must be >= 1, got 0"):
        steps_or_share("--decay-steps", "0", 100, minimum=1)
