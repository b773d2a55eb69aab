"""Pages of the image experiments, made by the command line at the smallest scale."""

import json
import re

from tests.paper import running

WORDS = ("--scale", "smoke", "--workers", "1", "--backend", "sequential")


def run(*words):
    return running.run(*words, *WORDS)


def made(folder, name):
    """The text of a page, and its values; the data, the store and the page are in ``folder``."""
    places = ("--data", str(folder), "--store", str(folder / "s.sqlite"), "--output", str(folder / "out"))
    result = run(name, *places)
    assert result.exit_code == 0, result.output
    page = (folder / "out" / f"{name}.md").read_text()
    assert page == result.stdout
    for picture in re.findall(r"\]\((.*?\.png)\)", page):
        assert (folder / "out" / picture).read_bytes()[:4] == b"\x89PNG"
    return page, json.loads(run(name, *places[:4], "--json").stdout)
