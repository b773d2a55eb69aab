import numpy as np
import pytest

from eigencurve import Spectrum, load_spectrum
from eigencurve.runs.store import Outcome
from eigencurve.spectrum import group, prepare
from paper.images.spectra_report import COLUMNS, MeasuredSpectrum, spectra_page

METRICS = {"dim": 1000.0, "accuracy": 87.25, "num_products": 40.0, "moved": 0.013, "settled": 1.0}
EIGENVALUES = np.geomspace(1e-3, 5.0, 200)


def measured(model="resnet18", divisor=16, **changes):
    settings = {
        "model": model, "divisor": divisor, "weight_decay": 5e-4, "lr": 0.1, "epochs": 8, "milestones": [4, 6],
        "num_images": 64, "schedule_steps": 500,
    }  # fmt: skip
    octaves = group(prepare(Spectrum(EIGENVALUES, np.ones(200)), 5e-4))
    shares = tuple(zip(octaves.index.astype(float).tolist(), octaves.share.tolist(), strict=True))
    curves = {"octaves": shares, "octave_errors": tuple((i, 0.125) for i, _ in shares)}
    fields = {"metrics": METRICS, "curve": tuple((x, 1 / 200) for x in EIGENVALUES.tolist()), "curves": curves}
    return MeasuredSpectrum(settings, Outcome(**fields | changes))


def overview(page):
    """The rows of the first table, by network."""
    table = next(part for part in page.body.split("\n\n") if part.startswith("| network |"))
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()[2:]]
    return {row[0]: dict(zip(COLUMNS[1:], row[1:], strict=True)) for row in rows}


def test_the_overview_states_what_was_measured():
    page = spectra_page("spectra", "About.", [measured(), measured("vgg16", 1)], None)
    first, second = overview(page).values()
    assert list(overview(page)) == ["ResNet-18, widths divided by 16", "VGG16"]
    assert first["parameters"] == "1,000"
    assert first["lr, epochs, milestones"] == "0.1, 8, [4, 6]"
    assert first["test accuracy (%)"] in ("87.2", "87.3")
    assert (first["products"], first["moved"]) == ("40 (settled)", "1.3%")
    assert float(first["λ_max"]) == pytest.approx(5.0)
    assert (first["paper"], second["paper"]) == ("8.15", "7.12")
    assert page.body.startswith("About.")


def test_every_spectrum_has_its_octaves_figure_and_file(tmp_path):
    found = measured()
    page = spectra_page("spectra", "About.", [found], None)
    assert list(page.figures) == ["spectra_resnet18_cifar10_narrow16.png", "spectra_schedules.png"]
    page.write(tmp_path, "Made by a test.")
    assert load_spectrum(tmp_path / "spectra_resnet18_cifar10_narrow16.npz") == found.spectrum
    octaves = [line for line in page.body.splitlines() if line.endswith("| 1.25e-01 | – |")]
    assert len(octaves) == len(found.outcome.curves["octaves"])


def test_published_shares_are_shown_if_the_file_is_there(data_path):
    folder = data_path("spectra/resnet-18_cifar10.txt").parents[1]
    page = spectra_page("spectra", "About.", [measured()], folder)
    assert not any(line.endswith("| 1.25e-01 | – |") for line in page.body.splitlines())
    assert page.body.count("| 1.25e-01 |") == len(measured().outcome.curves["octaves"])


def test_a_diverged_training_has_a_row_and_nothing_else():
    gone = measured(metrics={}, curve=(), curves={}, diverged=True)
    page = spectra_page("spectra", "About.", [gone], None)
    assert overview(page)["ResNet-18, widths divided by 16"]["parameters"] == "training diverged"
    assert list(page.figures) == ["spectra_schedules.png"]
    assert not page.files
    assert "no eigenvalue is within a factor of 100" in page.body
