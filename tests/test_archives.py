import contextlib
import io
import struct
import zipfile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigencurve._archives import MOST_UNPACKED, ArchiveError, read_arrays


def archive(compression=zipfile.ZIP_DEFLATED, **arrays):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as file:
        for name, values in arrays.items():
            inner = io.BytesIO()
            np.lib.format.write_array(inner, np.asarray(values), allow_pickle=False)
            file.writestr(f"{name}.npy", inner.getvalue())
    return buffer.getvalue()


def with_field(content, offset, value):
    """``content`` with a 16-bit field of the first entry changed, in its local header and in the directory."""
    changed, start = bytearray(content), content.index(b"PK\x01\x02")
    struct.pack_into("<H", changed, offset, value)
    struct.pack_into("<H", changed, start + offset + 2, value)
    return bytes(changed)


PLAIN = archive(a=np.arange(5), b=np.float64(2.5), c="text")


def test_plain_arrays_are_read():
    found = read_arrays(PLAIN)
    assert found["a"].tolist() == [0, 1, 2, 3, 4]
    assert (float(found["b"]), str(found["c"])) == (2.5, "text")


REFUSED = {
    "encrypted": (with_field(PLAIN, 6, 1), "encrypted"),
    "a newer version of zip": (with_field(PLAIN, 4, 99), "zip file version 9.9"),
    "an unknown compression": (with_field(PLAIN, 8, 97), "compression"),
    "bzip2": (archive(zipfile.ZIP_BZIP2, a=np.ones(3)), "compression"),
    "lzma": (archive(zipfile.ZIP_LZMA, a=np.ones(3)), "compression"),
    "complex numbers": (archive(a=np.array([1 + 2j])), "'a' holds complex128"),
    "dates": (archive(a=np.array(["2020-01-01"], dtype="datetime64[D]")), "'a' holds datetime64"),
    "a bomb": (archive(a=np.zeros(MOST_UNPACKED // 8 + 1)), "at most 256 MB unpacked, got 256.0 MB"),
    "no archive": (b"PK but no more", "not a zip file"),
    "nothing": (b"", "not a zip file"),
    "cut": (PLAIN[:-30], "not a zip file"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name):
    content, message = REFUSED[name]
    with pytest.raises(ArchiveError, match=message):
        read_arrays(content)


def test_a_large_file_may_hold_as_much_as_it_weighs():
    content = archive(zipfile.ZIP_STORED, a=np.zeros(1000))
    assert len(read_arrays(content, most_unpacked=10)["a"]) == 1000


@given(data=st.data())
def test_damage_raises_nothing_else(data):
    changed = bytearray(PLAIN)
    for _ in range(data.draw(st.integers(1, 4))):
        changed[data.draw(st.integers(0, len(PLAIN) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(ArchiveError):
        read_arrays(bytes(changed))
