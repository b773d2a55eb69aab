import sys

from tests.page_faults import faults, faults_of, needs_glibc

from eigencurve._heap import keep_freed_memory


def faults_with_kept_memory():
    assert keep_freed_memory()
    return faults()


@needs_glibc
def test_freed_memory_is_kept_when_asked():
    assert faults_of(faults_with_kept_memory) < faults_of(faults) / 10


def test_other_systems_return_false(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not keep_freed_memory()
