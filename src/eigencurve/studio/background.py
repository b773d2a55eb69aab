"""Search for the numerically best schedule in a background thread, so the page stays responsive."""

from __future__ import annotations

from collections import OrderedDict
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import TypeAlias

from eigencurve.theory.evaluators import BlockEvaluator
from eigencurve.theory.optimal import Search, search
from eigencurve.theory.quadratic import NoisyQuadratic

Question: TypeAlias = tuple[NoisyQuadratic, float, int]


class Searches:
    """Run one search at a time and keep the latest answers.

    A new question cancels the one that is still waiting, because the sliders have moved on.

    Args:
        most: Number of answers to keep.
    """

    def __init__(self, most: int = 16) -> None:
        self._most = most
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="best-schedule")
        self._answers: OrderedDict[Question, Future[Search]] = OrderedDict()
        self._lock = Lock()

    def ask(self, problem: NoisyQuadratic, max_lr: float, total_steps: int) -> Search | None:
        """The best schedule of T steps with rates up to ``max_lr``, or None while the search is running."""
        question = (problem, max_lr, total_steps)
        with self._lock:
            if question not in self._answers:
                self._drop_waiting()
                evaluator = BlockEvaluator(problem.nodes)
                self._answers[question] = self._pool.submit(search, evaluator, problem.spectrum, total_steps, max_lr)
            self._answers.move_to_end(question)
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)
            answer = self._answers[question]
        return answer.result() if answer.done() else None

    def __len__(self) -> int:
        return len(self._answers)

    def _drop_waiting(self) -> None:
        for question in [question for question, answer in self._answers.items() if answer.cancel()]:
            del self._answers[question]
