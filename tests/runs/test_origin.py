import re

import pytest

from eigencurve.runs import origin


def test_versions_and_revision_of_this_process():
    here = origin.origin_here()
    assert {"python", "eigencurve", "numpy"} <= set(here.versions)
    assert re.fullmatch(r"([0-9a-f]{12}\+?)?", here.revision)


def test_missing_packages_are_left_out(monkeypatch):
    monkeypatch.setattr(origin, "PACKAGES", ("numpy", "no-such-package"))
    assert list(origin.origin_here().versions) == ["python", "numpy"]


@pytest.mark.parametrize("failure", ["missing", "foreign"])
def test_outside_a_repository_the_revision_is_empty(monkeypatch, failure):
    def git(_folder, *words):
        if failure == "missing":
            raise FileNotFoundError("git")
        return "" if words[0] == "ls-files" else "0123456789ab"

    monkeypatch.setattr(origin, "_git", git)
    assert origin.origin_here().revision == ""
