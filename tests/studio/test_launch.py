import sys

import pytest

from eigencurve.studio import launch


def test_the_command_is_private_and_small_by_default():
    words = launch.command()
    assert words[:4] == [sys.executable, "-m", "streamlit", "run"]
    assert launch.APP.is_file()
    assert words[4] == str(launch.APP)
    for option in (
        "--server.address=127.0.0.1",
        "--server.port=8501",
        "--server.headless=false",
        "--server.maxUploadSize=5",
        "--server.showEmailPrompt=false",
        "--browser.gatherUsageStats=false",
        "--client.showErrorDetails=none",
    ):
        assert option in words


def test_host_port_and_browser():
    words = launch.command("0.0.0.0", 9000, open_browser=False)
    assert "--server.address=0.0.0.0" in words
    assert "--server.port=9000" in words
    assert "--server.headless=true" in words


def test_the_server_ends_with_the_one_who_started_it(monkeypatch):
    monkeypatch.setattr(launch, "command", lambda *_: [sys.executable, "-c", "raise SystemExit(3)"])
    assert launch.run() == 3


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(launch, "find_spec", lambda name: None if name == "plotly" else object())
    with pytest.raises(ImportError, match=r"needs plotly: pip install eigencurve\[studio\]"):
        launch.run()
