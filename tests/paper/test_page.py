import re

from matplotlib.figure import Figure

from paper.page import ResultsPage, epochs_text, made_by_line, markdown_table


def test_a_page_is_written_with_its_figures_and_files(tmp_path):
    page = ResultsPage("theory/rates", "Rates", "\nText.\n", {"figures/a.png": Figure()}, {"b.npz": b"bytes"})
    paths = page.write(tmp_path / "out", "Made by hand.")
    assert [str(path.relative_to(tmp_path / "out")) for path in paths] == [
        "theory/rates.md", "theory/b.npz", "theory/figures/a.png",
    ]  # fmt: skip
    assert paths[0].read_text() == page.text("Made by hand.") == "# Rates\n\nText.\n\nMade by hand.\n"
    assert paths[1].read_bytes() == b"bytes"
    assert paths[2].read_bytes()[:4] == b"\x89PNG"


def test_the_last_line_states_command_date_versions_and_revision():
    line = made_by_line("python -m paper rates -o results")
    pattern = r"Made by `python -m paper rates -o results` on 20\d\d-\d\d-\d\d; python 3\..*; revision \w+\+?\."
    assert re.fullmatch(pattern, line)


def test_tables_and_counts():
    assert markdown_table(["a", "b"], [["1", "2"]]) == "| a | b |\n| --- | --- |\n| 1 | 2 |"
    assert [epochs_text(count) for count in (1, 2)] == ["1 epoch", "2 epochs"]
