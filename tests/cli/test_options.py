import json

import pytest
from tests.cli.running import invoke, run

from eigencurve._check import ArgumentError
from eigencurve.cli.options import RunLength, steps_or_share, whole_number
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
    ("length", "total"),
    [(RunLength(30), 30), (RunLength(None, 2, 391), 782), (RunLength(None, 0.5, 31), 16)],
)
def test_the_number_of_steps_comes_from_steps_or_epochs(length, total):
    assert length.total == total
    assert length.is_given


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (RunLength(), "length of the run is missing"),
        (RunLength(None, 3, None), "length of the run is missing"),
        (RunLength(5, 1, None), "either --steps, or --epochs and --steps-per-epoch, not both"),
        (RunLength(5, None, 10), "either --steps, or --epochs and --steps-per-epoch, not both"),
        (RunLength(0), ">= 1"),
        (RunLength(None, 0.001, 10), "at least half a step"),
    ],
)
def test_a_missing_double_or_empty_length_is_refused(length, message):
    with pytest.raises(ValueError, match=message):
        assert length.total


@pytest.mark.parametrize(("text", "steps"), [("0", 0), ("500", 500), ("1e2", 100), ("5%", 50), ("0.25%", 3)])
def test_a_warmup_is_a_number_of_steps_or_a_share(text, steps):
    assert steps_or_share(text, "warmup", 1000) == steps


@pytest.mark.parametrize("text", ["long", "5.5", "%", "", "120%", "-5%", "1e999"])
def test_another_warmup_is_refused(text):
    with pytest.raises(ArgumentError) as error:
        steps_or_share(text, "warmup", 1000)
    assert (error.value.argument, error.value.value) == ("warmup", text)


@pytest.mark.parametrize(("text", "number"), [("39100", 39_100), ("1e4", 10_000), ("39_100", 39_100), ("2.5e3", 2_500)])
def test_numbers_of_steps_are_read_as_people_type_them(text, number):
    assert whole_number(text) == number
    printed = run("schedule", "--kind", "linear", "--steps", text, "--lr", "1", "--json").stdout
    assert json.loads(printed)["total_steps"] == number


@pytest.mark.parametrize("text", ["many", "1.5", "1e-3", "nan", "inf", "1e999999999", ""])
def test_other_numbers_of_steps_are_refused(text):
    result = invoke("schedule", "--kind", "linear", f"--steps={text}")
    assert result.exit_code == 2
    assert f"'--steps': {text!r} is not a whole number" in result.stderr
