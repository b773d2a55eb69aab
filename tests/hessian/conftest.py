import pytest
import torch


@pytest.fixture(autouse=True, scope="package")
def one_thread():
    """Use one thread: problems this small do not profit from more."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def same_weights():
    """Draw the same weights in every run, whatever ran before."""
    torch.manual_seed(0)
