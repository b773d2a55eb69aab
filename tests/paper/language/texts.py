"""Small texts and networks for the tests of the language experiment."""

import numpy as np
import torch

from paper.data.ptb import Corpus, Vocabulary
from paper.models.lstm import lstm
from paper.models.making import drawn_from


def words(num, seed):
    """A text in which each word narrows down the next."""
    rng = np.random.default_rng(seed)
    steps = rng.choice([1, 1, 1, 2, 3], num)
    return [f"w{i}" for i in np.cumsum(steps) % 17]


def corpus(num=400):
    vocabulary = Vocabulary.of(words(num, 0))
    return Corpus(*(vocabulary.encode(words(n, s)) for n, s in ((num, 0), (90, 1), (110, 2))), vocabulary, "steps")


def write_texts(folder):
    for name, num in (("ptb.valid.txt", 360), ("ptb.test.txt", 90)):
        text = words(num, num)
        (folder / name).write_text("\n".join(" ".join(text[i : i + 9]) for i in range(0, num, 9)) + "\n")
    return folder


def model_for(texts, dropout=0.0):
    with drawn_from(3):
        return lstm(len(texts.vocabulary), divisor=150, dropout=dropout, initial=0.3)


def flat(model):
    return torch.cat([p.detach().flatten() for p in model.parameters()])
