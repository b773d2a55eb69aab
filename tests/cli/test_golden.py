import sys

import pytest
from tests.cli.golden import CASES, FOLDER, case, close, difference, output_of, prepare

TORCH = ("estimate", "plan_model", "plan_no_batch")


@pytest.mark.parametrize("name", CASES)
def test_output_is_as_recorded(name, tmp_path, monkeypatch):
    if name.startswith(TORCH):
        pytest.importorskip("torch", reason="PyTorch is not installed")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["", *sys.path])
    prepare(tmp_path)
    expected = (FOLDER / f"{name}.txt").read_text()
    assert difference(expected, output_of(CASES[name])) == ""


def test_every_file_has_its_case():
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(CASES)


def test_errors_are_one_line_with_the_right_code():
    """Of the recorded cases: nothing on standard output, one line on standard error, 1, 2 or 130."""
    failed = 0
    for path in FOLDER.glob("*.txt"):
        head, _, errors = path.read_text().partition("\n--- standard error\n")
        code = head.splitlines()[1]
        if code != "exit 0":
            failed += 1
            assert code in ("exit 1", "exit 2", "exit 130"), path
            assert "".join(head.splitlines()[2:]) == "", path
            assert len(errors.strip().splitlines()) == 1, path
            assert errors.startswith(("error: ", "Interrupted.")), path
            assert "Traceback" not in errors
    assert failed > 30


def test_recorded_output_names_no_machine():
    for path in FOLDER.glob("*.txt"):
        assert "/tmp" not in path.read_text()
        assert "/home" not in path.read_text()


def test_differences_beyond_rounding_are_seen():
    assert difference("loss 0.1234 at 1,000", "loss  0.1235 at 1,000") == ""
    assert "0.1237" in difference("loss 0.1234", "loss 0.1237")
    assert "1,001" in difference("steps 1,000", "steps 1,001")
    assert "got" in difference("loss 0.1", "gain 0.1")
    assert difference("x 1.00e-04", "x 9.99e-05") == ""
    assert close("2.718281828459045", "2.718281828459046")
    assert case("a LAW").words == ("a", "--power-law", "1.5", "--kappa", "1e4")
