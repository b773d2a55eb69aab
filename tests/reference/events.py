"""TensorBoard's event files, written literally: one record after the other, the checksum bit by bit."""

import struct

SIMPLE, FLOAT_TENSOR, DOUBLE_CONTENT, IMAGE = "simple_value", "float_val", "tensor_content", "image"


def masked_crc32c(data):
    """CRC-32C by polynomial division, and TensorFlow's mask."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) % 2**32


def record(data):
    length = struct.pack("<Q", len(data))
    return length + struct.pack("<I", masked_crc32c(length)) + data + struct.pack("<I", masked_crc32c(data))


def varint(number):
    number %= 2**64
    out = b""
    while number >= 128:
        out += bytes([number % 128 + 128])
        number //= 128
    return out + bytes([number])


def message(number, content):
    """A field of bytes: a text or another message."""
    return varint(8 * number + 2) + varint(len(content)) + content


def scalar(tag, value, kind=SIMPLE):
    """A Summary.Value."""
    name = message(1, tag.encode())
    if kind == SIMPLE:
        return name + varint(8 * 2 + 5) + struct.pack("<f", value)
    if kind == FLOAT_TENSOR:
        return name + message(8, varint(8) + varint(1) + message(2, b"") + message(5, struct.pack("<f", value)))
    if kind == DOUBLE_CONTENT:
        return name + message(8, varint(8) + varint(2) + message(2, b"") + message(4, struct.pack("<d", value)))
    return name + message(4, b"\x89PNG" * 100)


def event(step, *values, wall_time=1.7e9):
    head = varint(8 * 1 + 1) + struct.pack("<d", wall_time) + varint(8 * 2) + varint(step)
    return head + message(5, b"".join(message(1, value) for value in values))


def version():
    """The first event of every file."""
    return varint(8 * 1 + 1) + struct.pack("<d", 1.7e9) + message(3, b"brain.Event:2")


def event_file(*events):
    return b"".join(record(data) for data in (version(), *events))
