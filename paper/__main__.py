"""``python -m paper NAME``: make a table or figure."""

import sys

from paper.cli import main

if __name__ == "__main__":  # worker processes import this module too
    sys.exit(main())
