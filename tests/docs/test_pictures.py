"""The committed pictures are those that the library draws."""

import re

import matplotlib as mpl
import pytest
from docs._make.pictures import FOLDER, PICTURES, drawn

NUMBER = re.compile(rb"-?\d+(?:\.\d+)?")
# In points. Another processor may round the last digit of a coordinate, and a curve begin a step later.
TOLERANCE = 0.5


def test_every_picture_is_drawn_by_the_script():
    assert {path.stem for path in FOLDER.iterdir()} == set(PICTURES)


def test_pictures_are_small():
    assert all(path.stat().st_size < 150_000 for path in FOLDER.iterdir())


@pytest.mark.parametrize("name", list(PICTURES))
def test_a_picture_is_what_the_library_draws(name):
    kept = (FOLDER / f"{name}.svg").read_bytes()
    version = re.search(rb"Matplotlib v([\d.]+)", kept)[1].decode()
    if version != mpl.__version__:
        pytest.skip(f"the picture was drawn by matplotlib {version}, which draws other outlines than {mpl.__version__}")
    now = drawn(name)
    assert NUMBER.sub(b"0", now) == NUMBER.sub(b"0", kept), "python docs/_make/pictures.py draws it anew"
    pairs = zip(NUMBER.findall(now), NUMBER.findall(kept), strict=True)
    assert max(abs(float(a) - float(b)) for a, b in pairs) <= TOLERANCE
