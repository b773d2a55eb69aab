import io

from rich.console import Console

from eigencurve.hessian.progress import progress_bar


def test_progress_shows_steps_speed_and_time_left_on_a_terminal_only():
    for shown, terminal in [(True, True), (False, True), (True, False)]:
        stream = io.StringIO()
        console = Console(file=stream, force_terminal=terminal, width=100)
        with progress_bar(shown, 10, "the plan", console) as advance:
            advance(3)
            advance(10)
        text = stream.getvalue()
        assert all(part in text for part in ("the plan", "10/10", "products/s", "0:00:00")) == (shown and terminal)
        assert bool(text) == (shown and terminal)
