from tests.cli.running import invoke

import eigencurve.cli.studio as studio
from eigencurve.studio import launch


def test_the_studio_is_served_with_its_settings(monkeypatch):
    calls = []
    monkeypatch.setattr(studio, "run", lambda *words, **more: calls.append((words, more)) or 0)
    assert invoke("studio", "--port", "8600", "--no-browser").exit_code == 0
    assert calls == [(("127.0.0.1", 8600), {"open_browser": False})]
    monkeypatch.setattr(studio, "run", lambda *_words, **_more: 3)
    assert invoke("studio").exit_code == 1
    monkeypatch.setattr(studio, "run", launch.run)
    monkeypatch.setattr(launch, "find_spec", lambda _name: None)
    result = invoke("studio")
    assert result.exit_code == 1
    assert result.stderr == "error: the studio needs streamlit and plotly: pip install eigencurve[studio]\n"
