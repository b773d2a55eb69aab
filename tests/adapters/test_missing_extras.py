import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow


ROOT = Path(__file__).parents[2]
BLOCKED = """
import sys
for name in {blocked!r}:
    sys.modules[name] = None
import eigencurve
try:
    import eigencurve.adapters.{adapter}
except ImportError as error:
    print(error)
"""


@pytest.mark.parametrize(
    ("adapter", "blocked", "extra"),
    [
        ("torch", ["torch"], "torch"),
        ("measuring", ["torch"], "torch"),
        ("lightning", ["lightning", "pytorch_lightning"], "lightning"),
        ("lightning", ["torch"], "lightning"),
        ("transformers", ["transformers"], "transformers"),
        ("transformers", ["torch"], "transformers"),
        ("accelerate", ["accelerate"], "accelerate"),
        ("range_test", ["torch"], "torch"),
        ("optax", ["optax"], "optax"),
        ("optax", ["jax"], "optax"),
        ("jax", ["jax"], "jax"),
        ("jax", ["torch"], "jax"),
        ("keras", ["keras"], "keras"),
    ],
)
def test_a_missing_framework_is_named_with_its_pip_line(adapter, blocked, extra):
    program = BLOCKED.format(blocked=blocked, adapter=adapter)
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    ended = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert ended.stdout.strip().endswith(f"pip install eigencurve[{extra}]")
