import pickle
import subprocess
import sys

import numpy as np
import pytest
from tests.paper.data.hostile import Runs

from paper.data.plain_pickle import ForbiddenNameError, load_plain


@pytest.mark.parametrize("protocol", range(6))
def test_pickles_of_today_are_read_too(protocol):
    value = {"data": np.arange(6, dtype=np.uint8).reshape(2, 3), "labels": [1, 2], "more": (1.5, "ä", b"\xff", None)}
    found = load_plain(pickle.dumps(value, protocol))
    assert np.array_equal(found.pop("data"), value.pop("data"))
    assert found == value


def test_arrays_of_every_kind_of_number_and_order():
    for kind in ("u1", "<i8", ">f4", "f8", "b1"):
        values = np.asfortranarray(np.arange(6).reshape(2, 3).astype(kind))
        found = load_plain(pickle.dumps(values))
        assert found.dtype == values.dtype
        assert np.array_equal(found, values)


@pytest.mark.parametrize(
    "name", [b"cbuiltins\neval\n", b"c__builtin__\neval\n", b"cnumpy\nload\n", b"cnumpy\nfromfile\n"]
)
def test_other_names_are_refused(name):
    forbidden = name[1:].decode().strip().replace("\n", r"\.")
    with pytest.raises(ForbiddenNameError, match=f"^{forbidden}$"):
        load_plain(b"\x80\x02" + name + b"U\x011\x85R.")


@pytest.mark.parametrize("protocol", range(6))
def test_a_pickle_that_would_run_code_runs_nothing(tmp_path, protocol):
    with pytest.raises(ForbiddenNameError, match=r"^\w+\.mkdir$"):
        load_plain(pickle.dumps([Runs(tmp_path / "ran")], protocol))
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"\x80\x02cnumpy\nndarray\n.",  # a name as a value
        b"\x80\x02]cnumpy\nndarray\na.",  # the same in a list
        b"\x80\x02cnumpy\nndarray\n)R.",  # a class, called
        b"\x80\x02cnumpy\ndtype\nN}U\x08__code__U\x01xs\x86b.",  # a name, changed
        b"\x80\x02cnumpy\nndarray\n)\x81.",  # a class, made anew
        pickle.dumps(np.array([{}], dtype=object)),  # an array of objects
        pickle.dumps(np.array([1, 2]))[:-9],  # cut off
        b"",
        b"not a pickle",
        b"\x80\x02cnumpy.core.multiarray\n_reconstruct\nK\x01\x85R(K\x01K\x07tb.",  # a state of another shape
        b"\x80\x02]q\x00h\x00a.",  # a list that holds itself
        b"Nr\xff\xff\xff\x3f.",  # a memo of 2³⁰ places
        b"Np1073741823\n.",  # the same in text
        b"\x96" + (1 << 33).to_bytes(8, "little"),  # 8 GB of bytes that do not follow
        b"\x8e" + (1 << 33).to_bytes(8, "little"),
    ],
)
def test_damaged_and_hostile_pickles_are_refused(content):
    with pytest.raises(pickle.UnpicklingError):
        load_plain(content)


def test_containers_in_many_places_are_made_once():
    value = [1]
    for _ in range(100):  # 2¹⁰⁰ ones when written out
        value = [value, value]
    found = load_plain(pickle.dumps(value))
    assert found[0] is found[1]


HUGE = [b"Nr\xff\xff\xff\x3f.", b"\x96" + (1 << 33).to_bytes(8, "little")]


@pytest.mark.parametrize("content", HUGE, ids=["memo", "bytes"])
def test_a_few_bytes_do_not_reserve_gigabytes(content):
    code = (
        "import pickle, resource, sys\n"
        "from paper.data.plain_pickle import load_plain\n"
        "used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))\n"
        "try:\n    load_plain(bytes.fromhex(sys.argv[1]))\n"
        "except pickle.UnpicklingError as error:\n    print(error)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 100_000)\n"
    )
    found = subprocess.run([sys.executable, "-c", code, content.hex()], check=True, capture_output=True, text=True)
    message, small = found.stdout.splitlines()
    assert "MemoryError" not in message
    assert message not in ("damaged or truncated ()", "")
    assert small == "True"


def test_the_message_about_a_long_number_is_short():
    with pytest.raises(pickle.UnpicklingError, match="damaged or truncated") as caught:
        load_plain(b"F" + b"9x" * 5000 + b"\n.")
    assert len(str(caught.value)) < 300
    with pytest.raises(ForbiddenNameError) as caught:
        load_plain(b"cos\n" + b"9" * 5000 + b"\n.")
    assert len(str(caught.value)) == 200
