import pytest
import torch

from eigencurve.experiments.studies import demo


@pytest.fixture(autouse=True)
def keep_threads():
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def test_same_seed_same_table_figures_and_page(tmp_path, monkeypatch, capsys):
    for name, value in {"REFERENCE_STEPS": 30, "TOTAL_STEPS": 20, "NUM_PROBED": 64}.items():
        monkeypatch.setattr(demo, name, value)
    printed = []
    for folder in ("first", "second"):
        demo.main([str(tmp_path / folder), "--seeds", "2", "--seed", "3"])
        printed.append(capsys.readouterr().out.rsplit("\n\n", 1)[0])
    assert printed[0] == printed[1]
    for part in (
        "share per octave",
        "interval",
        "eigencurve",
        "cosine",
        "step decay",
        "elastic step",
        "inverse time",
        "±",
    ):
        assert part in printed[0]
    written = {path.name for path in (tmp_path / "first").iterdir()}
    assert written == {"index.html", "spectrum.png", "learning-rates.png", "training.png"}
    page = (tmp_path / "first" / "index.html").read_text()
    assert page.count("<svg ") == 3
    assert "http" not in page
