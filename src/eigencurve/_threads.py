"""Small dense matrices on one BLAS thread.

With a thread per core, the threads of a BLAS spend more time waiting for each other than computing if the matrices are
small; on a busy machine, a fit that takes a second can take minutes.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from threadpoolctl import threadpool_limits

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


def on_one_blas_thread(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Run ``function`` with one BLAS thread; afterwards, also after an exception, the number is what it was."""

    @wraps(function)
    def limited(*args: Arguments.args, **known: Arguments.kwargs) -> Result:
        with threadpool_limits(1, user_api="blas"):
            return function(*args, **known)

    return limited
