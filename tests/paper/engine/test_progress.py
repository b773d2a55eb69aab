from paper.engine.progress import Progress, show_status


def test_runs_are_counted_from_start_to_end(terminal):
    with Progress("toy", 9, enabled=True) as bar:
        bar.show(done=2)
        bar.show(started=4)
        bar.show(finished=1)
        bar.show(failed=1)
    line = terminal()
    assert line.startswith("toy ")
    assert " 3/9 " in line
    assert " running 2, failed 1 " in line


def test_a_set_number_of_finished_runs_ends_the_count_of_running_ones(terminal):
    with Progress("toy", 9, enabled=True) as bar:
        bar.show(started=4)
        bar.show(done=7)
    line = terminal()
    assert " 7/9 " in line
    assert " running 0, failed 0 " in line


def test_nothing_is_drawn_outside_a_terminal(capsys):
    with Progress("toy", 9, enabled=True) as bar:
        bar.show(done=2)
    assert capsys.readouterr().err.strip() == ""


def test_nothing_is_drawn_when_disabled(terminal):
    with Progress("toy", 9, enabled=False) as bar:
        bar.show(done=2)
    show_status("next", enabled=False)
    assert terminal() == ""


def test_a_status_is_one_line_of_plain_text(capsys):
    text = "Training [bold] " + 100 * "x"
    show_status(text, enabled=True)
    assert capsys.readouterr().err == f"{text}\n"
