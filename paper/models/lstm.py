"""The regularised LSTM language model of Zaremba, Sutskever and Vinyals, arXiv:1409.2329."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from paper import checks
from paper.models.making import divided

WIDTH = 1_500
NUM_LAYERS = 2
DROPOUT = 0.65
INITIAL = 0.04


class State(NamedTuple):
    """The state that an LSTM carries from word to word; each tensor has shape (layers, rows, width)."""

    hidden: Tensor
    cell: Tensor

    def detached(self) -> State:
        """The same state, detached from the graph."""
        return State(self.hidden.detach(), self.cell.detach())


class LanguageModel(nn.Module):
    """Embedding, LSTM layers and a linear layer, with dropout on the non-recurrent connections only.

    All weights and biases are initialised uniformly in ±``initial``. PyTorch's LSTM, like the authors' code, has two
    bias vectors per layer, one for its input and one for its recurrent state.
    """

    def __init__(self, num_words: int, width: int, num_layers: int, dropout: float, initial: float) -> None:
        super().__init__()
        self.num_layers, self.width = num_layers, width
        self.embedding = nn.Embedding(num_words, width)
        self.dropout = nn.Dropout(dropout)
        self.lstm = nn.LSTM(width, width, num_layers, dropout=dropout, batch_first=True)
        self.decoder = nn.Linear(width, num_words)
        for parameter in self.parameters():
            nn.init.uniform_(parameter, -initial, initial)

    def forward(self, words: Tensor, state: State) -> tuple[Tensor, State]:
        """Logits of the next word after each of ``words`` (rows, columns), and the state after the last column."""
        outputs, (hidden, cell) = self.lstm(self.dropout(self.embedding(words)), tuple(state))
        return self.decoder(self.dropout(outputs)), State(hidden, cell)

    def initial_state(self, num_rows: int) -> State:
        """The zero state, on the device of the model."""
        zeros = torch.zeros(self.num_layers, num_rows, self.width, device=self.decoder.weight.device)
        return State(zeros, zeros.clone())


def lstm(
    num_classes: int = 10_000, divisor: int = 1, dropout: float = DROPOUT, initial: float = INITIAL
) -> LanguageModel:
    """The large model: 2 layers of 1,500 units, 66,034,000 parameters for a vocabulary of 10,000 words.

    The embedding has 10,000 × 1,500 weights, each layer 4 × 1,500 × (1,500 + 1,500) weights and 2 × 4 × 1,500 biases,
    the linear layer 1,500 × 10,000 weights and 10,000 biases. Implementations with one bias vector per layer have
    66,022,000.

    Args:
        num_classes: Number of words in the vocabulary.
        divisor: Divisor of the width.
        dropout: Dropout rate; the large model has 0.65.
        initial: Largest absolute value of an initial weight; the large model has 0.04.

    >>> with torch.device("meta"):
    ...     sum(p.numel() for p in lstm().parameters())
    66034000
    """
    checks.whole("lstm", "num_classes", num_classes, minimum=1)
    if not 0 <= dropout < 1:
        checks.refuse("lstm", "dropout", "at least 0 and below 1", dropout)
    (width,) = divided("lstm", (WIDTH,), divisor)
    return LanguageModel(num_classes, width, NUM_LAYERS, dropout, checks.positive("lstm", "initial", initial))
