"""Slow answers in a background thread, so the page stays responsive."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Lock
from typing import Any, Generic, ParamSpec, TypeVar

from eigencurve.theory.evaluators import BlockEvaluator
from eigencurve.theory.optimal import Search, search
from eigencurve.theory.quadratic import NoisyQuadratic

Question = ParamSpec("Question")
Answer = TypeVar("Answer")


class Answers(Generic[Question, Answer]):
    """Answer one question at a time and keep the latest answers.

    A new question cancels the one that is still waiting, because the sliders have moved on.

    Args:
        function: Computes an answer. Its arguments, the question, are hashable; equal ones have the same answer.
        most: Number of answers to keep.
        seconds: How long to keep them.
    """

    def __init__(self, function: Callable[Question, Answer], most: int = 16, seconds: float = 3600) -> None:
        self._function, self._most, self._seconds = function, most, seconds
        self._pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="studio")
        self._answers: OrderedDict[tuple[Any, ...], tuple[float, Future[Answer]]] = OrderedDict()
        self._lock = Lock()

    def ask(self, *question: Question.args, **named: Question.kwargs) -> Answer | None:
        """The answer to a question, or None while it is being computed.

        Raises:
            Exception: What the function raised.
        """
        key = (*question, *named.items())
        with self._lock:
            self._drop_old()
            if key not in self._answers:
                self._drop_waiting()
                self._answers[key] = time.monotonic(), self._pool.submit(self._function, *question, **named)
            self._answers.move_to_end(key)
            while len(self._answers) > self._most:
                self._answers.popitem(last=False)
            answer = self._answers[key][1]
        return answer.result() if answer.done() else None

    def __len__(self) -> int:
        return len(self._answers)

    def _drop_old(self) -> None:
        oldest = time.monotonic() - self._seconds
        for key in [key for key, (asked, _) in self._answers.items() if asked < oldest]:
            del self._answers[key]

    def _drop_waiting(self) -> None:
        for key in [key for key, (_, answer) in self._answers.items() if answer.cancel()]:
            del self._answers[key]


def best_schedule(problem: NoisyQuadratic, max_lr: float, total_steps: int) -> Search:
    """The numerically best schedule of T steps with rates up to ``max_lr``."""
    return search(BlockEvaluator(problem.nodes), problem.spectrum, total_steps, max_lr)
