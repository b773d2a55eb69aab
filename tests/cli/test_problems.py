import sys

import pytest

from eigencurve.cli.problems import load_problem, require_problem


def test_a_function_of_a_module_in_the_current_folder(here, monkeypatch):
    (here / "mine.py").write_text("def problem():\n    return 1, 2, 3\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    assert load_problem("mine:problem") == (1, 2, 3)
    sys.modules.pop("mine")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("train", "must look like my_project.training:problem, got 'train'"),
        (":problem", "must look like"),
        ("train.py:problem", "Did you mean 'train:problem'"),
        ("./my/train.py:problem", "Did you mean 'my.train:problem'"),
        ("my/train:problem", "Did you mean 'my.train:problem'"),
    ],
)
def test_a_word_that_names_no_function(word, message):
    with pytest.raises(ValueError, match=message):
        require_problem(word)
