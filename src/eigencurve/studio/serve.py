"""The process of the server: Streamlit until its parent ends, ``python -P -m eigencurve.studio.serve PID WORDS``."""

from __future__ import annotations

import runpy
import sys

from eigencurve._process import end_with_parent


def main() -> None:
    """Run Streamlit with the words that follow the process id of the parent."""
    end_with_parent(int(sys.argv.pop(1)))
    runpy.run_module("streamlit", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
