"""TensorBoard's event files, read without TensorBoard.

A file is a sequence of records: the length of the data (8 bytes), its checksum (4), the data, and their checksum (4).
The data are an ``Event`` in the wire format of protocol buffers. Only scalars are read: ``simple_value``, and tensors
of one float. Everything else, such as images and histograms, is skipped.

References: tensorflow/core/lib/io/record_writer.h, tensorflow/core/util/event.proto, and
tensorflow/core/framework/{summary,tensor}.proto.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from eigencurve._arrays import IntArray
from eigencurve.forecast.formats.log import Keep, Log, refuse_log

# A record of scalars is far shorter; longer ones hold images or graphs.
MAX_RECORD = 2**16
HEADER, FOOTER = 12, 4
VARINT, FIXED64, BYTES, FIXED32 = 0, 1, 2, 5
# Field numbers.
EVENT_STEP, EVENT_SUMMARY = 2, 5
SUMMARY_VALUE = 1
VALUE_TAG, VALUE_SIMPLE, VALUE_TENSOR = 1, 2, 8
TENSOR_TYPE, TENSOR_CONTENT, TENSOR_FLOATS, TENSOR_DOUBLES = 1, 4, 5, 6
# Numbers of the types of tensors, as struct reads them.
TENSOR_TYPES = {1: "<f", 2: "<d"}

UintArray = NDArray[np.uint32]


def _crc_table() -> UintArray:
    """CRC-32C of each byte (Castagnoli's polynomial, reflected)."""
    table = np.arange(256, dtype=np.uint32)
    for _ in range(8):
        table = np.where(table & 1, (table >> 1) ^ np.uint32(0x82F63B78), table >> 1).astype(np.uint32)
    return table


CRC_TABLE = _crc_table()


def masked_crc(rows: NDArray[np.uint8]) -> UintArray:
    """The masked CRC-32C of each row of bytes.

    >>> [hex(crc) for crc in masked_crc(np.frombuffer(b"123456789", dtype=np.uint8)[None])]
    ['0xc78ab0e5']
    """
    crc = np.full(len(rows), 0xFFFFFFFF, dtype=np.uint32)
    for column in rows.T:
        crc = CRC_TABLE[(crc ^ column) & 0xFF] ^ (crc >> np.uint32(8))
    crc = ~crc
    return ((crc >> np.uint32(15)) | (crc << np.uint32(17))) + np.uint32(0xA282EAD8)


def looks_like_events(content: bytes) -> bool:
    """Whether a file begins with the header of a record."""
    if len(content) < HEADER:
        return False
    header = np.frombuffer(content, dtype=np.uint8, count=HEADER)
    return bool(masked_crc(header[None, :8])[0] == header[8:].view("<u4")[0])


def read_events(paths: list[Path], contents: list[bytes], keep: Keep) -> Log:
    """The scalars in the event files of one run that ``keep`` asks for, the files in the order of their writing.

    A last record that is cut off, as by a run that is still writing, is ignored.

    Raises:
        ValueError: A checksum is wrong, or a record is not an event.
    """
    log, number = Log(paths[0] if len(paths) == 1 else paths[0].parent, "event", keep), 0
    for path, content in zip(paths, contents, strict=True):
        for start, length in _records(path, content):
            number += 1
            try:
                scalars = list(_scalars(content[start : start + length]))
            except (AttributeError, IndexError, TypeError, ValueError, struct.error):
                refuse_log(path, f"the record at byte {start} is not an event of TensorBoard")
            for step, tag, value in scalars:
                log.add(number, step, {tag: value})
    return log


def _records(path: Path, content: bytes) -> list[tuple[int, int]]:
    """Start and length of the data of every short record, their checksums verified."""
    records: list[tuple[int, int]] = []
    place, end = 0, len(content)
    while place + HEADER <= end:
        (length,) = struct.unpack_from("<Q", content, place)
        start = place + HEADER
        if length > end - start - FOOTER:
            break
        if length <= MAX_RECORD:
            records.append((start, length))
        place = start + length + FOOTER
    data = np.frombuffer(content, dtype=np.uint8)
    starts, lengths = np.array(records, dtype=np.int64).reshape(-1, 2).T
    # A last record that is cut off is normal; a wrong length looks the same, so its own checksum decides.
    headers = np.append(starts - HEADER, [place] if place + HEADER <= end else [])
    _require_checksums(path, data, headers.astype(np.int64), 8)
    for length in np.unique(lengths):
        _require_checksums(path, data, starts[lengths == length], int(length))
    return records


def _require_checksums(path: Path, data: NDArray[np.uint8], starts: IntArray, length: int) -> None:
    """Check the ``length`` bytes from each of ``starts`` against the checksum that follows them."""
    rows = max(1, 2**24 // (length + FOOTER))
    for chunk in (starts[i : i + rows] for i in range(0, len(starts), rows)):
        block = data[chunk[:, None] + np.arange(length + FOOTER)]
        stored = np.ascontiguousarray(block[:, length:]).view("<u4")[:, 0]
        wrong = np.flatnonzero(masked_crc(block[:, :length]) != stored)
        if len(wrong):
            refuse_log(path, f"the checksum at byte {chunk[wrong[0]] + length} is wrong: the file is damaged")


def _scalars(event: bytes) -> Iterator[tuple[int, str, float]]:
    """Step, tag and value of each scalar in an event."""
    fields = _fields(event)
    step = int(next(reversed(fields[EVENT_STEP]), 0))
    for summary in fields[EVENT_SUMMARY]:
        for value in map(_fields, _fields(summary)[SUMMARY_VALUE]):
            tag, number = b"".join(value[VALUE_TAG]).decode("utf-8"), _number(value)
            if number is not None:
                yield step - 2**64 * (step >= 2**63), tag, number


def _number(value: dict[int, list[Any]]) -> float | None:
    """The number of a summary's value if it is a scalar or a tensor of one float, or None."""
    for content in value[VALUE_SIMPLE]:
        return float(struct.unpack("<f", content)[0])
    for tensor in map(_fields, value[VALUE_TENSOR]):
        layout = TENSOR_TYPES.get(next(reversed(tensor[TENSOR_TYPE]), 0), "")
        content = b"".join([*tensor[TENSOR_CONTENT], *tensor[TENSOR_FLOATS], *tensor[TENSOR_DOUBLES]])
        if layout and len(content) == struct.calcsize(layout):
            return float(struct.unpack(layout, content)[0])
    return None


def _fields(message: bytes) -> dict[int, list[Any]]:
    """The contents of the fields by their number: integers, or the bytes of a number or a message."""
    fields: dict[int, list[Any]] = defaultdict(list)
    place = 0
    while place < len(message):
        key, place = _varint(message, place)
        number, kind = key >> 3, key & 7
        if kind == VARINT:
            value, place = _varint(message, place)
            fields[number].append(value)
            continue
        if kind == BYTES:
            length, place = _varint(message, place)
        elif kind in (FIXED32, FIXED64):
            length = 4 if kind == FIXED32 else 8
        else:
            raise ValueError(f"wire type {kind}")
        if length > len(message) - place:
            raise ValueError("a field is longer than its message")
        fields[number].append(message[place : place + length])
        place += length
    return fields


def _varint(message: bytes, place: int) -> tuple[int, int]:
    """A number of up to 64 bits, seven in each byte, and the place after it."""
    value = 0
    for shift in range(0, 70, 7):
        byte = message[place]
        place += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & (2**64 - 1), place
    raise ValueError("a varint of more than ten bytes")
