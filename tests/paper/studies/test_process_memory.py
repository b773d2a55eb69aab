import numpy as np

from paper.studies.process_memory import peak_bytes, reset_peak

SIZE = 100_000_000


def test_the_peak_keeps_memory_that_was_freed_until_it_is_reset():
    before = reset_peak()
    block = np.ones(SIZE // 8)
    del block
    assert 0.9 * SIZE < peak_bytes() - before < 1.2 * SIZE
    assert reset_peak() < before + 0.2 * SIZE
