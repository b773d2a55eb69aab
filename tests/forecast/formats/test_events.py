import contextlib
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.reference.events import (
    DOUBLE_CONTENT,
    FLOAT_TENSOR,
    IMAGE,
    SIMPLE,
    event,
    event_file,
    masked_crc32c,
    message,
    record,
    scalar,
    version,
)

from eigencurve.forecast.formats import events
from eigencurve.forecast.formats.events import looks_like_events, masked_crc, read_events

PATH = Path("events.out.tfevents.1")


def read(*contents, keep=lambda _name: True):
    log = read_events([PATH] * len(contents), list(contents), keep)
    return {name: (column.steps.tolist(), column.values.tolist()) for name, column in log.columns.items()}


@given(st.binary(max_size=80))
def test_the_checksum(data):
    assert masked_crc(np.frombuffer(data, dtype=np.uint8)[None])[0] == masked_crc32c(data)


def test_the_checksum_of_the_standard():
    """0xE3069283 is the published check value of CRC-32C; the mask rotates it by 15 bits and adds a constant."""
    mask = ((0xE3069283 >> 15 | 0xE3069283 << 17) + 0xA282EAD8) % 2**32
    assert masked_crc(np.frombuffer(b"123456789", dtype=np.uint8)[None])[0] == mask == masked_crc32c(b"123456789")


@pytest.mark.parametrize("kind", [SIMPLE, FLOAT_TENSOR, DOUBLE_CONTENT])
@given(
    points=st.lists(
        st.tuples(st.integers(-(2**53), 2**53), st.floats(width=32, allow_nan=False), st.text(max_size=9)),
        max_size=9,
    )
)
def test_scalars_are_read_back(kind, points):
    expected = {}
    for step, value, tag in points:
        steps, values = expected.setdefault(tag, ([], []))
        steps.append(step)
        values.append(value)
    assert read(event_file(*(event(step, scalar(tag, value, kind)) for step, value, tag in points))) == expected


def test_several_values_in_one_event_and_several_files():
    first = event_file(event(1, scalar("loss", 3.5), scalar("lr", 0.5)), event(2, scalar("picture", 0, IMAGE)))
    assert read(first, event_file(event(2, scalar("loss", 3.25)))) == {
        "loss": ([1, 2], [3.5, 3.25]),
        "lr": ([1], [0.5]),
    }
    assert read(first, keep=lambda name: name == "lr") == {"lr": ([1], [0.5])}


def test_the_writer_of_pytorch(tmp_path):
    """An independent writer, and TensorBoard's own reader of the same file."""
    pytest.importorskip("torch")
    pytest.importorskip("tensorboard", reason="tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(tmp_path) as writer:
        for step in range(200):
            writer.add_scalar("train/loss", 3 / (1 + step), step, new_style=step % 2 == 0)
        writer.add_histogram("weights", np.arange(100_000.0), 0)
        writer.add_text("note", "long " * 20_000, 0)
    (path,) = tmp_path.iterdir()
    found = read(path.read_bytes())["train/loss"]
    assert found[0] == list(range(200))
    assert found[1] == [float(np.float32(3 / (1 + step))) for step in range(200)]
    theirs = EventAccumulator(str(path), size_guidance={"scalars": 0}).Reload()
    old_style = [(scalar.step, scalar.value) for scalar in theirs.Scalars("train/loss")]
    assert set(old_style) <= set(zip(*found, strict=True))


WHOLE = event_file(*(event(step, scalar("loss", step / 4)) for step in range(5)))
START = len(record(version()))


def test_a_record_that_is_cut_off_is_ignored():
    for length in range(START, len(WHOLE)):
        steps, _ = read(WHOLE[:length]).get("loss", ([], []))
        assert steps == list(range(len(steps)))
        assert len(steps) == (length - START) // ((len(WHOLE) - START) // 5)


def test_every_damaged_byte_is_found():
    for place in range(0, len(WHOLE), 7):
        damaged = bytearray(WHOLE)
        damaged[place] ^= 0x10
        with pytest.raises(ValueError, match=r"the checksum at byte \d+ is wrong: the file is damaged"):
            read(bytes(damaged))


@pytest.mark.parametrize(
    "data", [b"\x0b", b"\x2a\x7f", b"\xff" * 11, b"\x2a\x02\x0a\x7f", message(5, message(1, b"\x0a\x01\xff"))]
)
def test_a_record_that_is_no_event(data):
    with pytest.raises(ValueError, match=r"the record at byte \d+ is not an event of TensorBoard"):
        read(record(version()) + record(data))


@given(st.lists(st.binary(max_size=40), max_size=3))
def test_valid_records_of_any_bytes_raise_nothing_but_valueerror(data):
    with contextlib.suppress(ValueError):
        read(record(version()) + b"".join(map(record, data)))


def test_long_records_are_skipped(monkeypatch):
    monkeypatch.setattr(events, "MAX_RECORD", 100)
    content = event_file(event(1, scalar("loss", 1.0)), event(2, scalar("a" * 200, 1.0)), event(3, scalar("loss", 3.0)))
    assert read(content) == {"loss": ([1, 3], [1.0, 3.0])}


def test_detection():
    assert looks_like_events(WHOLE)
    assert not looks_like_events(b"step,lr,loss\n1,2,3\n")
    assert not looks_like_events(b"")
    assert not looks_like_events(b"\0" * 100)
