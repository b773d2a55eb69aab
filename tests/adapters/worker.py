"""A process that calls functions by name, for a framework whose settings are fixed at import.

``python -m tests.adapters.worker MODULE`` imports MODULE once. Each line on standard input is a call in JSON, and each
line on standard output its result. Warnings are errors, except deprecation warnings.
"""

import contextlib
import functools
import importlib
import json
import os
import subprocess
import sys
import traceback
import warnings
import weakref


class Worker:
    """Handle of the process, which starts when it is first needed and ends with this one."""

    def __init__(self, module, **environment):
        self.module, self.environment = module, environment

    @functools.cached_property
    def _process(self):
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.adapters.worker", self.module],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, **self.environment},
        )  # fmt: skip
        weakref.finalize(self, _end, process)
        return process

    def call(self, function, *arguments, **named):
        self._process.stdin.write(json.dumps([function, arguments, named]) + "\n")
        self._process.stdin.flush()
        answer = json.loads(self._process.stdout.readline() or '{"error": "the worker ended"}')
        assert "error" not in answer, f"in the worker for {self.module}:\n{answer['error']}"
        return answer["result"]


def _end(process):
    process.stdin.close()
    process.wait()
    process.stdout.close()


def _answer(module, line):
    function, arguments, named = json.loads(line)
    try:
        with warnings.catch_warnings(), contextlib.redirect_stdout(sys.stderr):
            warnings.simplefilter("error")
            warnings.simplefilter("ignore", DeprecationWarning)
            warnings.simplefilter("ignore", PendingDeprecationWarning)
            return {"result": getattr(module, function)(*arguments, **named)}
    except BaseException:
        return {"error": traceback.format_exc()}


if __name__ == "__main__":
    called = importlib.import_module(sys.argv[1])
    for request in sys.stdin:
        print(json.dumps(_answer(called, request)), flush=True)
