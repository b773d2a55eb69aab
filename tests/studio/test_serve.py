import os
import subprocess
import sys

import pytest
from tests.test_process import wait_for_the_end

FAKE = "import os, sys, time; print(os.getpid(), sys.argv[1:], flush=True); time.sleep(600)"
PARENT = """
import os, subprocess, sys, time
words = [sys.executable, "-P", "-m", "eigencurve.studio.serve", str(os.getpid()), "run", "app.py"]
subprocess.Popen(words)
time.sleep(600)
"""


def test_a_file_in_the_current_folder_is_not_taken_for_streamlit(tmp_path):
    pytest.importorskip("streamlit", reason="Streamlit is not installed")
    for name in ("streamlit.py", "queue.py"):
        (tmp_path / name).write_text("open('planted', 'w')")
    words = [sys.executable, "-P", "-m", "eigencurve.studio.serve", str(os.getpid()), "version"]
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
