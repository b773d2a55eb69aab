"""Numbers quoted from results/ occur in the file that they are quoted from.

The check covers each paragraph or table that follows a marker such as ``<!-- numbers: results/ridge.md -->``.
"""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
QUOTED = re.compile(r"^<!-- numbers: (?P<file>\S+) -->\n(?P<text>.+?)(?:\n\n|\Z)", re.MULTILINE | re.DOTALL)
NUMBER = re.compile(r"(?<![\w.])\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?%?(?!\w)")
# Links, names of networks and data sets, and parameter values are not quoted numbers.
NO_NUMBER = re.compile(r"\]\([^)]*\)|(?:ResNet|VGG|CIFAR|ImageNet)-?\d+|β = \d|σ² = 1\b")


def quotes():
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in pages:
        for match in QUOTED.finditer(page.read_text()):
            yield pytest.param(match["file"], match["text"], id=f"{page.name}: {match['text'][:30]}")


def numbers(text):
    return [found.rstrip(",") for found in NUMBER.findall(NO_NUMBER.sub(" ", text))]


@pytest.mark.parametrize(("file", "text"), list(quotes()))
def test_quoted_numbers_are_in_the_file(file, text):
    known = set(numbers((ROOT / file).read_text()))
    quoted = numbers(text)
    assert quoted, "the marked text quotes no number"
    assert not [number for number in quoted if number not in known], f"not in {file}"


def test_readme_quotes_results():
    assert len(QUOTED.findall((ROOT / "README.md").read_text())) >= 3


def test_numbers_are_found_in_text():
    assert numbers("ResNet-18 has 1.071, 39,100 steps and 100.0% (β = 2), 3.39e+05") == [
        "1.071",
        "39,100",
        "100.0%",
        "3.39e+05",
    ]
