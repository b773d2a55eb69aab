"""Gradient noise and spectrum of several networks at the start, after a tenth, a half and at the end of training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from eigencurve.hessian import keep_freed_memory
from paper.engine.progress import show_status
from paper.engine.request import Request
from paper.page import ResultsPage, made_by_line
from paper.studies.noise_measuring import Measuring, file_of, load_measured, measure, measurings
from paper.studies.noise_page import noise_page
from paper.studies.noise_results import Measured, Studied
from paper.studies.noise_subjects import NoiseScale, noise_scale
from paper.studies.noise_training import Problem, State, Subject, problem_of, state_at, train_subject
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
    work = _Work(subject, scale, problem_of(subject, data), folder, progress)
    files = work.train()
    found = {how: work.measured(how, files) for how in measurings(subject, scale)}
    steps = 0 if work.problem.task is None else subject.epochs * work.problem.task.steps_per_epoch
    return Studied(subject, steps, found)


@dataclass(frozen=True, eq=False)
class _Work:
    subject: Subject
    scale: NoiseScale
    problem: Problem
    folder: Path
    progress: bool

    def train(self) -> Mapping[str, Path]:
        if not self.subject.epochs:
            return {}
        show_status(f"{self.subject.title}: training ...", self.progress)
        return train_subject(self.subject, self.problem, self.folder, self.progress)

    def measured(self, how: Measuring, files: Mapping[str, Path]) -> Measured:
        state = state_at(self.subject, self.problem, files, how.moment)
        path = file_of(self.subject, self.problem, self.scale, how, self.folder)
        if not path.exists():
            self._measure(how, state, path)
        return Measured(state.step, state.metrics, load_measured(path))

    def _measure(self, how: Measuring, state: State, path: Path) -> None:
        probe = f", probe {how.probe}" if how.probe else ""
        about = f"{self.subject.title}: {how.moment}, {how.metric}, {how.num_curved} examples{probe} ..."
        show_status(about, self.progress)
        measure(self.subject, self.problem, self.scale, how, state, path, made_by_line(COMMAND))
