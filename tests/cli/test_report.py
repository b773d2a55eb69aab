import html
from pathlib import Path

import pytest
from tests.cli.running import refused, run

import eigencurve as ec

LAW = ["report", "--power-law", "1.5", "--kappa", "1e3", "--steps", "60"]


def test_the_command_writes_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    run(*LAW, "-o", "r.html")
    page = Path("r.html").read_text()
    assert "Which schedule to use" in page
    assert "momentum=" not in page
    assert run(*LAW, "-o", "-").stdout == page.replace("-o r.html", "-o -")
    assert "already exists" in refused(*LAW, "-o", "r.html")


@pytest.mark.usefixtures("here")
def test_the_page_is_the_plan_of_its_own_options():
    words = ["report", "noisy.npz", "--steps", "60", "--batch-size", "8", "--warmup", "5", "-o", "-"]
    options = {"total_steps": 60, "batch_size": 8, "warmup_steps": 5}
    for more, given in (
        ([], {}),
        (
            ["--lr", "3", "--momentum", "0.9", "--weight-decay", "0.1"],
            {"lr": 3.0, "momentum": 0.9, "weight_decay": 0.1},
        ),
        (["--initial-error", "2"], {"initial_error": 2.0}),
    ):
        result = run(*words, *more)
        plan = ec.plan("noisy.npz", **options, **given)
        assert f'<p class="verdict">{plan.verdict}' in result.stdout
        assert f"Peak rate {plan.lr:.4g}" in result.stderr
        assert all(html.escape(entry.value) in result.stdout for entry in plan.inputs)
