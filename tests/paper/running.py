"""Run ``python -m paper`` in this process."""

import contextlib
import io
from dataclasses import dataclass

from paper.cli import main


@dataclass(frozen=True)
class Result:
    exit_code: int
    stdout: str
    stderr: str

    @property
    def output(self):
        return self.stdout + self.stderr


def run(*words):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main([str(word) for word in words])
        except SystemExit as error:  # argparse
            code = error.code
    return Result(code, out.getvalue(), err.getvalue())
