import json
import subprocess
import sys

import eigencurve as ec

HEAVY = [
    "torch",
    "jax",
    "keras",
    "tensorflow",
    "matplotlib",
    "streamlit",
    "lightning",
    "transformers",
    "pandas",
    "numba",
]


def test_importing_the_core_loads_no_framework():
    code = "import json, sys; import eigencurve; print(json.dumps(sorted(m.split('.')[0] for m in sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not set(HEAVY) & set(json.loads(result.stdout))


def test_every_public_name_is_there():
    assert all(hasattr(ec, name) for name in ec.__all__)
    assert ec.__version__
