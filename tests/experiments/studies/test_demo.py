import torch

from eigencurve.experiments.engine.request import Request
from eigencurve.experiments.studies import demo


def test_the_same_seed_gives_the_same_table(tmp_path, monkeypatch, capsys):
    small = {"REFERENCE_STEPS": 30, "TOTAL_STEPS": 20, "NUM_PROBED": 64, "NUM_STARTS": 2, "SEED": 3}
    for name, value in small.items():
        monkeypatch.setattr(demo, name, value)
    before = torch.get_num_threads()
    first, second = (demo.make(Request(tmp_path / "s.sqlite", progress=shown)) for shown in (True, False))
    assert first.body == second.body
    assert torch.get_num_threads() == before
    assert capsys.readouterr().err.count("Training ") == 2
    words = ("share per octave", "interval", "cosine", "step decay", "elastic step", "inverse time", "±")
    assert all(part in first.body for part in ("eigencurve", *words))
    first.write(tmp_path / "out", "Made by a test.")
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert written == {"demo.md", "index.html", "spectrum.png", "learning-rates.png", "training.png"}
    assert not (tmp_path / "s.sqlite").exists()
