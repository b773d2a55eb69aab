import pytest
from tests.cli.golden import CASES, FOLDER, close, difference, output_of


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", CASES)
def test_output_is_as_recorded(name):
    if name.startswith("estimate"):
        pytest.importorskip("torch", reason="PyTorch is not installed")
    assert difference((FOLDER / name).read_text(), output_of(name)) == ""


def test_every_file_has_its_case_and_names_no_machine():
    assert {path.name for path in FOLDER.iterdir()} == set(CASES)
    assert not any(word in path.read_text() for path in FOLDER.iterdir() for word in ("/tmp", "/home"))


def test_differences_beyond_rounding_are_seen():
    assert difference("loss 0.1234 at 1,000", "loss 0.1235 at 1,000") == ""
    assert "0.1237" in difference("loss 0.1234", "loss 0.1237")
    assert "1,001" in difference("steps 1,000", "steps 1,001")
    assert "got" in difference("loss 0.1", "gain 0.1")
    assert difference("x 1.00e-04", "x 9.99e-05") == ""
    assert close("2.718281828459045", "2.718281828459046")
