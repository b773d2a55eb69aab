import contextlib
import io

import torch
from rich.console import Console
from tests.hessian.matrices import MatrixOperator, hessian_like

from eigencurve.hessian import estimate_spectrum, loop
from eigencurve.hessian.loop import progress_bar


def test_progress_shows_steps_speed_and_time_left_on_a_terminal_only():
    for shown, terminal in [(True, True), (False, True), (True, False)]:
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=terminal, width=100)
        with progress_bar(shown, 10, "the plan", console) as advance:
            advance(3, None)
            advance(10, None)
        text = stream.getvalue()
        assert all(part in text for part in ("the plan", "10/10", "products/s", "0:00:00")) == (shown and terminal)
        assert bool(text) == (shown and terminal)


def test_a_note_is_shown_in_front_of_the_bar_and_fits_on_a_terminal():
    stream = io.StringIO()
    console = Console(file=stream, force_terminal=True, width=80)
    with progress_bar(True, 250, "the plan", console) as advance:
        advance(100, lambda: "along 10.2%, across 10.1%")
        advance(110, None)
    last = [line for line in stream.getvalue().splitlines() if "110/250" in line][-1]
    assert "along 10.2%, across 10.1%" in last
    assert "products/s" in last


def test_a_hidden_bar_does_not_compute_its_note():
    with progress_bar(False, 10, "the plan") as advance:
        advance(3, lambda: 1 / 0)


def test_an_estimate_shows_the_errors_along_one_probe_and_across_probes(monkeypatch):
    notes = []

    @contextlib.contextmanager
    def recording(*_arguments):
        yield lambda done, note: notes.append((done, note())) if note is not None else None

    monkeypatch.setattr(loop, "progress_bar", recording)
    found = estimate_spectrum(MatrixOperator(hessian_like(2000, 20), torch.float32), 60, settle=1e-9)
    assert notes[0] == (32, f"along ?, across {notes[0][1].split()[-1]}")
    assert [done for done, _ in notes[:-1]] == sorted({done for done, _ in notes[:-1]})
    assert notes[-1] == (60, f"along {found.schedule_change:.1%}, across {found.error_between_probes:.1%}")
