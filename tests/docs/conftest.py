import logging
import re
from pathlib import Path
from types import SimpleNamespace

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="session")
def site(tmp_path_factory):
    """The site as ``make docs`` builds it. ``warnings`` holds the messages that would fail a strict build."""
    pytest.importorskip("mkdocs", reason="mkdocs is not installed: pip install eigencurve[docs]")
    pytest.importorskip("material", reason="mkdocs-material is not installed: pip install eigencurve[docs]")
    pytest.importorskip("mkdocstrings", reason="mkdocstrings is not installed: pip install eigencurve[docs]")
    import mkdocs.commands.build
    import mkdocs.config

    folder = tmp_path_factory.mktemp("site")
    warnings = []
    handler = logging.Handler(logging.WARNING)
    handler.emit = lambda record: warnings.append(record.getMessage())
    logging.getLogger("mkdocs").addHandler(handler)
    config = mkdocs.config.load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=False)
    mkdocs.commands.build.build(config)
    logging.getLogger("mkdocs").removeHandler(handler)
    pages = {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*.html")}
    anchors = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in pages.items()}
    return SimpleNamespace(folder=folder, pages=pages, anchors=anchors, warnings=warnings)
