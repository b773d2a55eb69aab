"""Stored runs are found by a hash of their settings, so a change of the settings would repeat days of training."""

import hashlib
import json
from pathlib import Path

import pytest

from eigencurve.runs import Run, key_of
from paper.byte_text import scales as bytes_
from paper.images import scales as images
from paper.images.paired import PUBLISHED, earlier_run_settings, paired_grids
from paper.language import scales as language
from paper.ridge.experiment import EPOCHS
from paper.ridge.experiment import grids as ridge_grids

FILES = Path(__file__).parents[2] / "results" / "runs"
# The number of settings of all grids, and a hash of the keys of their runs.
PINNED = {
    "images, paper": (1083, "93c02c429b9b"),
    "images, desk": (195, "bba7b0eaed39"),
    "images, laptop": (195, "7b4c6aadda3b"),
    "images, smoke": (99, "0d6fd99e80db"),
    "paired, paper": (53, "bd5ac9476f97"),
    "paired, desk": (53, "dc336738d6bb"),
    "paired, laptop": (53, "9e31257d7fcb"),
    "paired, smoke": (27, "b892e74b253a"),
    "language, paper": (55, "c53de9844537"),
    "language, laptop": (20, "5fccb0972924"),
    "language, smoke": (20, "c83fbfb3b8f1"),
    "bytes, desk": (46, "b06e3a006645"),
    "bytes, smoke": (31, "10a9d9c47b48"),
}


def flat(*grids):
    return [settings for grid in grids for some in grid.values() for settings in some]


def digest(every):
    keys = sorted(key_of("name", Run(settings, 7)) for settings in every)
    return len(keys), hashlib.sha256("".join(keys).encode()).hexdigest()[:12]


def all_settings(experiment, name):
    if experiment == "images":
        scale = images.SCALES[name]
        grids = [images.grids(scale, n, epochs, "own", "reused") for n in images.NETWORKS for epochs in (10, 100)]
        return [*flat(*grids), *(images.spectrum_settings(scale, network) for network in images.NETWORKS)]
    if experiment == "paired":
        scale = images.SCALES[name]
        grids = [paired_grids(scale, 10, "own", True, momentum) for momentum in (0.0, 0.9)]
        return [*flat(*grids), earlier_run_settings(scale, 10, 100)]
    if experiment == "language":
        return flat(language.grids(language.SCALES[name]))
    scale = bytes_.SCALES[name]
    grids = [bytes_.grids(scale, part, "own") for part in (bytes_.FIRST, bytes_.REST, bytes_.AGAIN)]
    return [*flat(*grids), bytes_.earlier_run_settings(scale)]


@pytest.mark.parametrize("which", PINNED)
def test_the_keys_of_the_grids_are_as_recorded(which):
    assert digest(all_settings(*which.split(", "))) == PINNED[which]


def test_the_keys_of_ridge_regression_are_as_recorded():
    assert digest(flat(*map(ridge_grids, EPOCHS))) == (2360, "fba6a05c4aa0")


def rows_of(name):
    return [json.loads(line) for line in (FILES / f"{name}.jsonl").read_text().splitlines()[1:]]


@pytest.mark.parametrize("name", ["bytes-again", "cifar10-paired"])
def test_the_keys_of_published_runs_follow_from_their_settings(name):
    for row in rows_of(name):
        assert row["key"] == key_of(row["experiment"], Run(row["settings"], row["seed"]))


def test_the_published_runs_of_images_are_those_of_the_grids():
    rows = [row for row in rows_of("cifar10-paired") if row["experiment"].startswith("images/")]
    (spectrum,) = {row["settings"].get("spectrum") for row in rows} - {None, PUBLISHED}
    for momentum in (0.0, 0.9):
        for settings in flat(paired_grids(images.DESK_SCALE, 10, spectrum, True, momentum)):
            assert key_of(rows[0]["experiment"], Run(settings, 100)) in {row["key"] for row in rows}


def test_the_published_runs_of_bytes_are_those_of_the_grids():
    rows = [row for row in rows_of("bytes-again") if row["settings"]["schedule"] != "points"]
    grid, seeds = flat(bytes_.grids(bytes_.DESK_SCALE, bytes_.AGAIN)), range(bytes_.DESK_SCALE.num_seeds)
    known = {key_of(rows[0]["experiment"], Run(settings, seed)) for settings in grid for seed in seeds}
    assert rows
    assert all(row["key"] in known for row in rows)
