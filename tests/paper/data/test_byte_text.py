import pytest
import torch

from paper.data.byte_text import ByteText, load_byte_text, text_windows, windows_at
from paper.data.folder import data_folder


def write(folder, train=b" no it was n't \n", test=b" it is \xc3\xa9 \n"):
    (folder / "ptb.valid.txt").write_bytes(train)
    (folder / "ptb.test.txt").write_bytes(test)
    return folder


def test_texts_are_their_bytes(tmp_path):
    text = load_byte_text(write(tmp_path))
    assert bytes(text.train.tolist()) == b" no it was n't \n"
    assert bytes(text.test.tolist()) == b" it is \xc3\xa9 \n"
    assert text.train.dtype == torch.int64


def test_the_digest_sees_every_byte_and_the_border():
    texts = [([1, 2, 3], [4]), ([1, 2], [3, 4]), ([1, 2, 3], [5])]
    digests = {ByteText(torch.tensor(one), torch.tensor(two), "x").digest for one, two in texts}
    assert len(digests) == 3


def test_windows_predict_every_byte_but_the_first():
    text = torch.arange(20, 31)
    inputs, following = text_windows(text, 3)
    assert inputs.tolist() == [[20, 21, 22], [23, 24, 25], [26, 27, 28]]
    assert torch.equal(following, inputs + 1)


def test_bad_texts_are_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"ptb.valid.txt is missing"):
        load_byte_text(tmp_path)
    with pytest.raises(ValueError, match="'path' must be a text with bytes in it"):
        load_byte_text(write(tmp_path, test=b""))
    with pytest.raises(ValueError, match="'text' must be longer than one window of 5 bytes, got 5"):
        text_windows(torch.arange(5), 5)


def test_the_penn_treebank():
    folder = data_folder()
    if folder is None or not (folder / "ptb").is_dir():
        pytest.skip("EIGENCURVE_DATA has no ptb/")
    text = load_byte_text(folder / "ptb")
    assert (len(text.train), len(text.test)) == (399_782, 449_945)
    assert text.train.max() < 128


def test_windows_end_before_the_last_byte():
    text, following = windows_at(torch.arange(100), torch.tensor([94]), 5)
    assert following[0, -1] == 99
    assert text.shape == (1, 5)
