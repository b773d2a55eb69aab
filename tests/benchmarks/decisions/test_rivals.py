import numpy as np
import pytest

pytest.importorskip("prodigyopt", reason="the rivals' packages are not installed")
pytest.importorskip("dadaptation", reason="the rivals' packages are not installed")
pytest.importorskip("schedulefree", reason="the rivals' packages are not installed")
from benchmarks.decisions import rivals

from .toy import toy_task


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_every_rival_finishes_a_run(optimizer):
    task = toy_task(optimizer, batch_size=2)
    for rival in rivals.optimizer_makers(task):
        for lr in rivals.rates_of(task, rival)[:1]:
            losses = rivals.train(task, rival, lr, seed=0)
            assert np.isfinite([losses["train"], losses["valid"], *losses["averaged_valid"]]).all()
