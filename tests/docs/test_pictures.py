"""The committed figures are those that the library draws."""

import re

import matplotlib as mpl
import pytest
from docs._make.pictures import FOLDER, PICTURES, drawn

pytestmark = pytest.mark.slow


SCREENSHOT = "studio.png"
NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
# In points. Coordinates may differ in the last digit between processors, and a curve may start one step later.
TOLERANCE = 0.5


def test_every_picture_is_drawn_by_the_script():
    assert {path.stem for path in FOLDER.glob("*.svg")} == set(PICTURES)
    assert {path.name for path in FOLDER.iterdir() if path.suffix != ".svg"} == {SCREENSHOT}


def test_pictures_are_small():
    assert all(path.stat().st_size < 150_000 for path in FOLDER.iterdir())


@pytest.mark.parametrize("name", list(PICTURES))
def test_picture_is_what_the_library_draws(name):
    kept = (FOLDER / f"{name}.svg").read_bytes()
    version = re.search(rb"Matplotlib v([\d.]+)", kept)[1].decode()
    if version != mpl.__version__:
        pytest.skip(f"drawn by matplotlib {version}; glyph outlines differ in {mpl.__version__}")
    now = drawn(name)
    assert NUMBER.sub(b"0", now) == NUMBER.sub(b"0", kept), "run python docs/_make/pictures.py to draw it again"
    pairs = zip(NUMBER.findall(now), NUMBER.findall(kept), strict=True)
    assert max(abs(float(a) - float(b)) for a, b in pairs) <= TOLERANCE
