import os
import signal
import subprocess
import sys

import pytest
from tests.test_process import wait_for_the_end

from eigencurve.studio import launch


def test_the_command_is_private_and_small_by_default():
    words = launch.command()
    assert words[:6] == [sys.executable, "-P", "-m", "eigencurve.studio.launch", str(os.getpid()), "run"]
    assert launch.APP.is_file()
    assert words[6] == str(launch.APP)
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


SERVER = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
LAUNCH = """
import sys
from eigencurve.studio import launch
launch.command = lambda *_: [sys.executable, "-c", sys.argv[1]]
launch.find_spec = lambda _: object()
launch.run()
"""


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT"])
def test_the_server_ends_before_the_one_who_is_asked_to_end(name):
    launcher = subprocess.Popen([sys.executable, "-c", LAUNCH, SERVER], stdout=subprocess.PIPE, text=True)
    server = int(launcher.stdout.readline())
    launcher.send_signal(getattr(signal, name))
    assert launcher.wait() != 0
    launcher.stdout.close()
    with pytest.raises(ProcessLookupError):
        os.kill(server, signal.SIGKILL)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr(launch, "find_spec", lambda name: None if name == "plotly" else object())
    with pytest.raises(ImportError, match=r"needs plotly: pip install eigencurve\[studio\]"):
        launch.run()


FAKE = "import os, sys, time; print(os.getpid(), sys.argv[1:], flush=True); time.sleep(600)"
PARENT = """
import os, subprocess, sys, time
words = [sys.executable, "-P", "-m", "eigencurve.studio.launch", str(os.getpid()), "run", "app.py"]
subprocess.Popen(words)
time.sleep(600)
"""


def test_a_file_in_the_current_folder_is_not_taken_for_streamlit(tmp_path):
    pytest.importorskip("streamlit", reason="Streamlit is not installed")
    for name in ("streamlit.py", "queue.py"):
        (tmp_path / name).write_text("open('planted', 'w')")
    words = [sys.executable, "-P", "-m", "eigencurve.studio.launch", str(os.getpid()), "version"]
    printed = subprocess.run(words, cwd=tmp_path, check=True, capture_output=True, text=True)
    assert "Streamlit, version" in printed.stdout
    assert not (tmp_path / "planted").exists()


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="needs /proc to look at processes")
def test_the_server_ends_with_a_launcher_that_is_killed(tmp_path):
    (tmp_path / "streamlit").mkdir()
    (tmp_path / "streamlit" / "__init__.py").touch()
    (tmp_path / "streamlit" / "__main__.py").write_text(FAKE)
    path = os.pathsep.join((str(tmp_path), os.environ.get("PYTHONPATH", "")))
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": path}
    )
    server, words = parent.stdout.readline().split(" ", 1)
    assert words == "['run', 'app.py']\n"
    parent.kill()
    assert wait_for_the_end(int(server))
    parent.communicate()
