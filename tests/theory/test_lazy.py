import json
import subprocess
import sys


def modules_after(code):
    script = f"import json, sys; {code}; print(json.dumps(sorted({{m.split('.')[0] for m in sys.modules}})))"
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(json.loads(result.stdout))


def test_the_compiler_is_loaded_with_the_theory_and_not_before():
    assert "numba" not in modules_after("import eigencurve; dir(eigencurve); eigencurve.piecewise")
    assert "numba" in modules_after("from eigencurve import NoisyQuadratic")
