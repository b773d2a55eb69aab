"""Gradient noise and spectrum of several networks at the start, after a tenth, a half and at the end of training."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from eigencurve.hessian import keep_freed_memory
from paper.engine.progress import show_status
from paper.engine.request import Request
from paper.page import ResultsPage, made_by_line
from paper.studies.noise_measuring import file_of, load_measured, measure, measurings
from paper.studies.noise_page import noise_page
from paper.studies.noise_results import Measured, Studied
from paper.studies.noise_training import (
    NoiseScale,
    Subject,
    noise_scale,
    problem_of,
    state_at,
    train_subject,
)
from paper.training.devices import threads

COMMAND = "python -m paper noise"


def make(request: Request) -> ResultsPage:
    """Train, measure and compare; finished parts are kept next to the store, so a killed study resumes."""
    keep_freed_memory()
    scale, folder = noise_scale(request.scale), request.checkpoints / "noise"
    folder.mkdir(exist_ok=True)
    with threads(1):
        studied = [study(subject, scale, request.data, folder, request.progress) for subject in scale.subjects]
    return noise_page(scale, studied)


def study(subject: Subject, scale: NoiseScale, data: Path | None, folder: Path, progress: bool = False) -> Studied:
    """Train a network and measure it at every moment, except what was done before."""
    problem = problem_of(subject, data)
    files: Mapping[str, Path] = {}
    if subject.epochs:
        show_status(f"{subject.title}: training ...", progress)
        files = train_subject(subject, problem, folder, progress)
    found = {}
    for how in measurings(subject, scale):
        state = state_at(subject, problem, files, how.moment)
        path = file_of(subject, problem, scale, how, folder)
        if not path.exists():
            probe = f", probe {how.probe}" if how.probe else ""
            about = f"{how.moment}, {how.metric}, {how.num_curved} examples{probe}"
            show_status(f"{subject.title}: {about} ...", progress)
            measure(subject, problem, scale, how, state, path, made_by_line(COMMAND))
        found[how] = Measured(state.step, state.metrics, load_measured(path))
    steps = 0 if problem.task is None else subject.epochs * problem.task.steps_per_epoch
    return Studied(subject, steps, found)
