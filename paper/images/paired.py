"""Ten schedules on CIFAR-10 with the same seeds, without and with momentum: which differences are real."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eigencurve import Spectrum
from eigencurve.runs import Run
from paper import checks
from paper.data.folder import data_folder
from paper.data.published import RESNET_CIFAR10, published_spectrum
from paper.engine.protocol import execute
from paper.engine.request import Request
from paper.engine.winners import find_winners, finished_winners
from paper.images import paper
from paper.images.experiment import image_experiment
from paper.images.paired_report import PairedTable
from paper.images.recommendation import curve_name, recommendation_experiment
from paper.images.report import REPORTED, image_page
from paper.images.scales import (
    SHRINKAGES,
    TITLES,
    Grid,
    Scale,
    base_settings,
    beta_for,
    estimate_settings,
    final_settings,
)
from paper.images.spectra import spectrum_name, spectrum_of
from paper.images.tables import SELECTION_SEEDS, SPECTRUM_SEED, ImageSetup, setup_for
from paper.page import ResultsPage

NETWORK = "resnet18"
RATES = (0.3, 0.6, 0.1, 1.0)  # in the order in which they are tried
MOMENTUM = 0.9
PUBLISHED = "published/resnet-18_cifar10"
LINEAR, WSD, FROM_PUBLISHED = "Linear Decay", "WSD", "Eigencurve, published spectrum"
RECOMMENDATION = "Recommendation"
WITH_MOMENTUM = (paper.COSINE, LINEAR, WSD, paper.EIGENCURVE)


def make(request: Request) -> ResultsPage:
    """The tables without and with momentum; with ``part="finished"`` from the runs that the store already has.

    The recommendation comes last, because it needs further measurements.
    """
    setup = setup_for(request)
    name, spectra = _spectra(setup)
    sections = [(epochs, m) for epochs in request.budgets(setup.scale.epochs) for m in (0.0, MOMENTUM)]
    grids = {(epochs, m): paired_grids(setup.scale, epochs, name, PUBLISHED in spectra, m) for epochs, m in sections}
    for epochs, momentum in sections if request.part != "finished" else ():
        _table(setup, epochs, momentum, grids[epochs, momentum], spectra)
    recommended = _recommended(setup, name, spectra[name])
    tables = []
    for epochs, momentum in sections:
        points = recommended.get(momentum)
        every = dict(grids[epochs, momentum])
        if points is not None or request.part == "finished":
            shape = {"schedule": "points", "points": points}
            every[RECOMMENDATION] = with_rates(setup.scale, epochs, shape, momentum)
        tables.append(_table(setup, epochs, momentum, every, spectra))
    return image_page(
        "cifar10-paired", "CIFAR-10: which differences between schedules are real", _description(setup), tables
    )


def paired_grids(
    scale: Scale, epochs: int, spectrum: str, with_published: bool, momentum: float = 0.0
) -> dict[str, Grid]:
    """The settings to try, by schedule: a few rates, and nothing else, so every schedule is searched equally.

    Cosine, linear, WSD and Eigencurve end at rate 0. Momentum m multiplies the rates by 1 - m.

    Args:
        scale: Scale of the experiment.
        epochs: Budget.
        spectrum: Name of the spectrum measured at the end of an earlier run.
        with_published: Whether the published spectrum is available.
        momentum: Momentum m; above 0, only the schedules in ``WITH_MOMENTUM`` are tried.
    """
    shapes = _shapes(spectrum, beta_for(epochs))
    unwanted = set() if with_published else {FROM_PUBLISHED}
    wanted = [name for name in (WITH_MOMENTUM if momentum else shapes) if name not in unwanted]
    return {name: with_rates(scale, epochs, shapes[name], momentum) for name in wanted}


def with_rates(scale: Scale, epochs: int, shape: Mapping[str, Any], momentum: float) -> Grid:
    """The settings of one schedule, one per rate."""
    base = {**base_settings(scale, NETWORK, epochs), "momentum": momentum}
    rates = [round(rate * (1 - momentum), 6) for rate in RATES[: scale.num_tries]]
    return [{**base, **shape, "lr": rate} for rate in rates]


def _shapes(spectrum: str, beta: float) -> dict[str, dict[str, Any]]:
    """The settings of each schedule besides its rate, in the order in which they run.

    A schedule that is added here adds its own runs; those in the store stay valid.
    """
    curve = {"schedule": "eigencurve", "beta": beta, "min_lr": 0.0}
    return {
        paper.COSINE: {"schedule": "cosine", "min_lr": 0.0},
        paper.EIGENCURVE: {**curve, "spectrum": spectrum},
        paper.STEP: {"schedule": "step_decay", "intervals": "log T", "factor": 2.0},
        LINEAR: {"schedule": "linear", "min_lr": 0.0},
        WSD: {"schedule": "wsd", "decay_share": 0.2},
        FROM_PUBLISHED: {**curve, "spectrum": PUBLISHED},
        paper.GENERAL: {"schedule": "step_decay", "intervals": 3, "factor": 10.0},
        paper.INVERSE: {"schedule": "inverse_time", "min_lr": 0.01},
        paper.ELASTIC: {"schedule": "elastic_step", "r": SHRINKAGES[0]},
    }


def earlier_run_settings(scale: Scale, epochs: int, total_steps: int) -> dict[str, Any]:
    """Settings of a run with cosine decay at the first of the rates, and of the estimate at its end."""
    run = {**base_settings(scale, NETWORK, epochs), "split": "test", "schedule": "cosine", "lr": RATES[0]}
    return {**run, "min_lr": 0.0, **estimate_settings(scale.spectrum, total_steps)}


def _earlier_run(setup: ImageSetup) -> dict[str, Any]:
    scale, epochs = setup.scale, setup.scale.epochs[0]
    return earlier_run_settings(scale, epochs, epochs * -(-len(setup.few.train) // scale.batch_size))


def _spectra(setup: ImageSetup) -> tuple[str, dict[str, Spectrum]]:
    """The name of the measured spectrum, and the spectra by name; the published one if it is available."""
    settings = _earlier_run(setup)
    if setup.request.part == "finished" and not setup.is_measured(settings):
        remedy = "Its spectrum is not measured yet: run the command without --part first."
        checks.refuse("paper", "part", "left out for this store", setup.request.part, remedy)
    (outcome,) = setup.measure([settings])
    measured = spectrum_of(outcome)
    name = spectrum_name(settings, measured)
    spectra = {name: measured}
    for folder in (setup.request.data, data_folder()):
        if folder is not None and (folder / "spectra" / RESNET_CIFAR10).is_file():
            spectra[PUBLISHED] = published_spectrum(folder, RESNET_CIFAR10)
    return name, spectra


def _recommended(setup: ImageSetup, name: str, spectrum: Spectrum) -> dict[float, list[list[float]]]:
    """The recommended schedule for each momentum, as points; empty if it is not finished."""
    request = setup.request
    run = Run({**_earlier_run(setup), "spectrum": name, "momenta": [0.0, MOMENTUM]}, SPECTRUM_SEED)
    experiment = recommendation_experiment(setup.few, spectrum, request.checkpoints)
    if request.part != "finished":
        execute(experiment, [run], request.store, request.workers, request.progress)
    (outcome,) = request.store.outcomes(experiment.name, [run])
    if outcome is None or outcome.diverged:
        return {}
    return {m: [list(point) for point in outcome.curves[curve_name(m)]] for m in (0.0, MOMENTUM)}


def _table(
    setup: ImageSetup, epochs: int, momentum: float, grids: Mapping[str, Grid], spectra: Mapping[str, Spectrum]
) -> PairedTable:
    request, seeds = setup.request, range(setup.scale.num_trials)
    experiment = image_experiment(setup.data, spectra, request.checkpoints, log=request.tensorboard)
    search = (experiment, grids, SELECTION_SEEDS, seeds, request, REPORTED, final_settings)
    if request.part != "finished":
        find_winners(*search)
    winners, missing = finished_winners(*search)
    published = {} if momentum else paper.CIFAR10.get((NETWORK, epochs), {})
    rates = [settings["lr"] for settings in next(iter(grids.values()))]
    return PairedTable(TITLES[NETWORK], epochs, momentum, rates, winners, missing, published)


def _description(setup: ImageSetup) -> list[str]:
    how = setup.scale.spectrum
    return [
        *setup.description([NETWORK]),
        "Only the rate is searched. Cosine, linear, WSD (decay over the last 20 %) and Eigencurve end at rate 0,"
        " Inverse Time Decay at 0.01; Step Decay has ⌊log2 T⌋ intervals and factor 2, General Step Decay three and 10,"
        f" Elastic Step Decay r = {SHRINKAGES[0]:g}. Eigencurve uses the spectrum at the end of an earlier run with"
        f" cosine decay at rate {RATES[0]:g}, measured on {how.num_images} training images; its second row uses the"
        " spectrum that the paper's authors published. The runs with momentum"
        f" {MOMENTUM:g} have a tenth of the rates.",
        "The recommendation is that of `eigencurve.plan` for that spectrum, with the gradient noise and the initial"
        " error that were measured on the same run, scaled to the searched rate.",
        "Runs of the same seed start from the same weights and see the images in the same order, so differences are"
        " taken seed by seed. An interval is that of Student's t; it assumes that differences are normal.",
    ]
