"""A number that is quoted from results/ stands in the file that it is quoted from.

A paragraph or table after ``<!-- numbers: results/ridge.md -->`` is held to it.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUOTED = re.compile(r"^<!-- numbers: (?P<file>\S+) -->\n(?P<text>.+?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?%?(?!\w)")
# Names of networks and data, links, and small whole numbers that are words ("four schedules, 2 of them").
NO_NUMBER = re.compile(r"\]\([^)]*\)|(?:ResNet|VGG|CIFAR|ImageNet)-?\d+|β = \d|σ² = 1\b")


def quotes():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        for match in QUOTED.finditer(page.read_text()):
            yield pytest.param(match["file"], match["text"], id=f"{page.name}: {match['text'][:30]}")


def numbers(text):
    return [found.rstrip(",") for found in NUMBER.findall(NO_NUMBER.sub(" ", text))]


@pytest.mark.parametrize(("file", "text"), list(quotes()))
def test_quoted_numbers_are_those_of_the_file(file, text):
    known = set(numbers((ROOT / file).read_text()))
    said = numbers(text)
    assert said, "nothing is quoted here"
    assert not [number for number in said if number not in known], f"not in {file}"


def test_the_readme_quotes():
    assert len(QUOTED.findall((ROOT / "README.md").read_text())) >= 3


def test_a_wrong_number_is_noticed():
    assert numbers("ResNet-18 has 1.071, 39,100 steps and 100.0% (β = 2), 3.39e+05") == [
        "1.071",
        "39,100",
        "100.0%",
        "3.39e+05",
    ]
