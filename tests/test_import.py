import json
import subprocess
import sys
from importlib.util import find_spec

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
    frameworks = {"torch_schedule": "torch"}
    for name in ec.__all__:
        if name not in frameworks or find_spec(frameworks[name]):
            assert hasattr(ec, name)
    assert ec.__version__


def test_a_plan_from_nothing_loads_few_modules():
    code = (
        "import json, sys; import eigencurve; eigencurve.plan(total_steps=100, optimizer='adamw'); "
        "print(json.dumps(sorted(m for m in sys.modules if m.startswith('eigencurve'))))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert len(json.loads(result.stdout)) <= 40
