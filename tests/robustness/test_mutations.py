"""The faults of the mutation test: each is valid code that differs, and the sample is the same every time."""

import ast
from pathlib import Path

import pytest
from robustness.mutations import mutations, sample

SOURCE = '''
"""A module; 1 + 1."""
LIMIT = 3.0


def f(x: int = 2, *, flag=True) -> float:
    """Not 5 > 4."""
    if x < 1 or (not flag and x * 2 in (3, 4)):
        raise ValueError(f"{x + 1}")
    λ = "ä" + str(max(x, 0.5))  # two bytes a letter
    return -x ** 2 if x >= λ else (x  # why
        + 7)
'''


def texts(source):
    return sorted((one.line, source[one.start : one.stop].strip(), one.text.strip()) for one in mutations(source))


def test_what_is_changed_and_what_is_not():
    lines = SOURCE.splitlines()
    found = texts(SOURCE)
    changed = {(lines[line - 1].strip().split()[0], old, new) for line, old, new in found}
    assert {
        ("def", "2", "3"), ("def", "True", "False"), ("if", "<", "<="), ("if", "not flag", "flag"), ("if", "*", "/"),
        ("if", "in", "not in"), ("λ", "max", "min"), ("λ", "0.5", "1.0"), ("return", ">=", "<"),
    } <= changed  # fmt: skip
    assert not {line for line, _, _ in found} & {2, 3, 7, 9}  # docstrings, the constant in capitals, the message


@pytest.mark.parametrize("source", [SOURCE, Path(__file__).read_text()], ids=["small", "this file"])
def test_every_fault_is_code_that_differs(source):
    before = ast.dump(ast.parse(source))
    for one in mutations(source):
        assert ast.dump(ast.parse(one.applied(source))) != before, one.shown(source)


def test_the_sample_depends_on_the_seed_alone():
    assert sample(SOURCE, 5, "a") == sample(SOURCE, 5, "a")
    assert sample(SOURCE, 5, "a") != sample(SOURCE, 5, "b")
    assert sorted(sample(SOURCE, 999, "a")) == mutations(SOURCE)
