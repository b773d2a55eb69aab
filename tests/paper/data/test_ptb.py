import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.paper.language import texts

from paper.data.folder import data_folder
from paper.data.ptb import (
    FILES,
    ByteText,
    Vocabulary,
    load_byte_text,
    load_ptb,
    load_small_ptb,
    num_windows,
    read_words,
    rows_of,
    text_windows,
    windows,
    windows_at,
)

TEXTS = (" the cat sat \n the <unk> ran \n", " a cat ran \n", " the dog \n")


def write_texts(folder, texts=TEXTS):
    for name, text in zip(FILES, texts, strict=True):
        (folder / name).write_text(text)
    return folder


def test_a_small_corpus_by_hand(tmp_path):
    corpus = load_ptb(write_texts(tmp_path))
    assert corpus.vocabulary.words == ("<eos>", "the", "<unk>", "cat", "ran", "sat")
    assert corpus.train.tolist() == [1, 3, 5, 0, 1, 2, 4, 0]
    assert corpus.valid.tolist() == [2, 3, 4, 0]  # "a" is unknown
    assert corpus.test.tolist() == [1, 2, 0]
    assert corpus.digest == load_ptb(tmp_path).digest
    write_texts(tmp_path, (*TEXTS[:2], " the cat \n"))
    assert load_ptb(tmp_path).digest != corpus.digest


def test_the_real_texts_have_their_known_sizes(data_path):
    valid, test = (read_words(data_path(f"ptb/ptb.{part}.txt")) for part in ("valid", "test"))
    assert (len(valid), len(test)) == (73_760, 82_430)
    assert valid.count("<eos>") == 3_370
    assert len(Vocabulary.of(valid)) == 6_022


@pytest.mark.parametrize("part", range(3))
def test_bad_texts_are_refused_by_name(tmp_path, part):
    path = write_texts(tmp_path) / FILES[part]
    path.write_bytes(b" caf\xe9 \n")
    with pytest.raises(ValueError, match=rf"a text in UTF-8, got '.*{FILES[part]}'. Byte 4 is not"):
        load_ptb(tmp_path)
    path.write_bytes(b"\n \n")
    with pytest.raises(ValueError, match=rf"a text of the Penn Treebank, got '.*{FILES[part]}'"):
        load_ptb(tmp_path)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=rf"{FILES[part]} is missing"):
        load_ptb(tmp_path)


@given(st.integers(1, 7), st.integers(1, 9), st.integers(2, 150))
def test_windows_go_through_every_row_in_order(batch_size, unroll, num_words):
    text = torch.arange(num_words)
    if num_words < 2 * batch_size:
        with pytest.raises(ValueError, match="rows_of: 'text' must be >="):
            rows_of(text, batch_size)
        return
    rows = rows_of(text, batch_size)
    every = list(windows(rows, unroll, whole=False))
    assert torch.equal(torch.cat([x for x, _ in every], 1), rows[:, :-1])
    assert torch.equal(torch.cat([y for _, y in every], 1), rows[:, 1:])
    whole = list(windows(rows, unroll))
    assert len(whole) == num_windows(num_words, batch_size, unroll)
    assert all(x.shape == y.shape == (batch_size, unroll) for x, y in whole)
    assert all(torch.equal(x, z) for (x, _), (z, _) in zip(whole, every, strict=False))
    assert num_words - rows.numel() < batch_size


def test_the_small_corpus_keeps_its_parts_apart(tmp_path):
    found = load_small_ptb(texts.write_texts(tmp_path), least=2)
    ends = (found.train == found.vocabulary.places["<eos>"]).nonzero()
    assert found.train[-1] == found.vocabulary.places["<eos>"]
    assert len(found.train) + len(found.valid) == 360 + 40  # an end to each of forty lines
    assert len(found.train) == 370  # to the end of the line that the 361st word is in
    assert len(ends) == 37
    assert len(found.test) == 90 + 10


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
    with pytest.raises(ValueError, match="'data' must be a text of the Penn Treebank"):
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
