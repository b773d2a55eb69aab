from paper.data import limits


def test_the_data_of_the_paper_is_far_within_the_limits():
    assert limits.MOST_PIXELS > 5 * 12_000_000  # a large photograph of ImageNet
    assert limits.MOST_DENSE_BYTES / 10 > 8 * 123 * 32_561  # a9a, the largest relative of a4a
    assert limits.MOST_COLUMNS > 20_216_830  # kdd2010, one of the widest LIBSVM files
