import pytest
import torch
from tests.paper.models.counting import num_parameters

from paper.models.googlenet import MODULES, Inception, googlenet


@pytest.mark.parametrize(("divisor", "count"), [(1, 6_166_250), (4, 392_738)])
def test_the_number_of_parameters_is_the_known_one(divisor, count):
    assert num_parameters("googlenet", 10, divisor) == count


def test_a_module_concatenates_its_four_branches():
    module = Inception(8, (1, 2, 3, 4, 5, 6)).eval()
    x = torch.randn(2, 8, 5, 5, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        parts = module(x).split([1, 3, 5, 6], dim=1)
        branches = [branch(x) for branch in (module.branch1, module.branch3, module.branch5, module.branch_pool)]
    assert module.num_outputs == 15
    assert all(torch.equal(part, branch) for part, branch in zip(parts, branches, strict=True))


def test_two_pools_halve_the_image():
    with torch.device("meta"):
        model = googlenet()
        found = model.body(model.stem(torch.zeros(1, 3, 32, 32)))
    assert len(model.body) == len(MODULES) + 2
    assert found.shape == (1, 1024, 8, 8)
