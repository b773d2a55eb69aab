"""The pages of the theory's tables, made with short runs."""

import re


def check_page(page, folder):
    """Write a page and return its text; it has one figure and states how it was made."""
    name = page.name.rpartition("/")[2]
    paths = page.write(folder, "Made by `python -m paper`.")
    assert [path.name for path in paths] == [f"{name}.md", f"{name}.png"]
    assert paths[1].read_bytes().startswith(b"\x89PNG")
    text = paths[0].read_text()
    assert re.match(rf"# .*\n\n!\[{name}\]\({name}\.png\)\n", text)
    assert text.endswith("\nMade by `python -m paper`.\n")
    return text
