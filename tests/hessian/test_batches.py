import pytest
import torch

from eigencurve.hessian import HessianOperator
from eigencurve.hessian.batches import Batches

CPU = torch.device("cpu")


def used(batch):
    return int((batch["weight"] > 0).sum())


def test_microbatches_are_cut_by_rows_even_if_few_of_them_count():
    batch = {"x": torch.arange(8.0), "weight": torch.tensor([0, 0, 0, 0, 0, 1, 0, 1])}
    pieces = list(Batches("f", batch, False, CPU, 3, used))
    assert [(size, piece["x"].tolist()) for size, piece in pieces] == [(1, [3.0, 4.0, 5.0]), (1, [6.0, 7.0])]


def test_microbatches_without_an_example_that_counts_are_skipped():
    model = torch.nn.Linear(1, 1, bias=False)
    batch = {"x": torch.arange(1.0, 7.0).view(6, 1), "weight": torch.tensor([1, 1, 0, 0, 1, 0])}

    def loss(model, batch):
        """Undefined for a batch without examples that count."""
        return model(batch["x"])[batch["weight"] > 0].square().mean()

    whole = HessianOperator.from_objective(model, loss, batch, count=used)
    cut = HessianOperator.from_objective(model, loss, batch, microbatch=2, count=used)
    expected = torch.tensor([2 * (1 + 4 + 25) / 3])
    torch.testing.assert_close(whole(torch.ones(1)), expected)
    torch.testing.assert_close(cut(torch.ones(1)), expected)
    assert cut.num_examples == 3


def test_no_example_that_counts_is_an_error():
    with pytest.raises(ValueError, match="'batches' must be at least one example"):
        Batches("f", {"x": torch.ones(2), "weight": torch.zeros(2)}, False, CPU, None, used)


def test_the_halves_of_a_batch_have_all_its_rows():
    x, y = torch.arange(5.0), torch.arange(5)
    batches = Batches("f", (x, y), True, torch.device("cpu"), None, None)
    (first, left), (second, right) = batches.halves((x, y))
    assert (first, second) == (2, 3)
    assert torch.equal(torch.cat((left[0], right[0])), x)
    assert torch.equal(torch.cat((left[1], right[1])), y)
    assert batches.halves((x[:1], y[:1])) == []
    positive = Batches("f", (x, y), True, torch.device("cpu"), None, lambda batch: int((batch[1] > 2).sum()))
    assert positive.halves((x, y)) == []
