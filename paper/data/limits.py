"""Limits of the readers of data sets, so that a small file cannot fill the memory."""

from __future__ import annotations

# An image: the pixels that it decodes to, and the ratio of its sides, because the shorter side is scaled to 256.
MOST_PIXELS = 64_000_000
MOST_ASPECT = 100
# Sparse rows: the largest index, and the bytes of the dense matrix or of its Gram matrix.
MOST_COLUMNS = 2**31 - 1
MOST_DENSE_BYTES = 1 << 30
