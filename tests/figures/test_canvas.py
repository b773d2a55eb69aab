import subprocess
import sys


def test_without_matplotlib_the_extra_is_named():
    code = "import sys; sys.modules['matplotlib'] = None; import eigencurve.figures.canvas"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install eigencurve[plot]" in result.stderr
