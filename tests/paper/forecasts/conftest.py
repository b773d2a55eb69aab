import pytest
from tests.paper.forecasts.curves_folder import write_curves

from paper.data.curves import published_runs
from paper.forecasts.report import measure
from paper.forecasts.splits import splits_of


@pytest.fixture(scope="session")
def curves(tmp_path_factory):
    """A data folder with small logs."""
    return write_curves(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def splits(curves):
    return splits_of(published_runs(curves))


@pytest.fixture(scope="session")
def found(curves):
    """The study of the small logs."""
    return measure(curves)
