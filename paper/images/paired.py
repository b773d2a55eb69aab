"""Ten schedules on CIFAR-10 with the same seeds, without and with momentum: which differences are real."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from eigencurve import Spectrum
from eigencurve.runs import Run
from paper import checks
from paper.data.folder import RESNET_CIFAR10, data_folder, published_spectrum
from paper.engine.pairing import (
    PairedDifference,
    differences_table,
    paired_differences,
    seeds_sentence,
    together_sentence,
)
from paper.engine.protocol import execute
from paper.engine.request import Request
from paper.engine.winners import GridSearch, Missing, Winner
from paper.images import paper
from paper.images.experiment import image_experiment
from paper.images.report import REPORTED, ResultTable, image_page
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
from paper.images.spectra import curve_name, recommendation_experiment, spectrum_name, spectrum_of
from paper.images.tables import SELECTION_SEEDS, SPECTRUM_SEED, ImageSetup, setup_for
from paper.page import ResultsPage, epochs_text

REFERENCE = paper.COSINE
RESOLVED = 0.5  # percentage points
NETWORK = "resnet18"
RATES = (0.3, 0.6, 0.1, 1.0)  # in the order in which they are tried
MOMENTUM = 0.9
PUBLISHED = "published/resnet-18_cifar10"
LINEAR, WSD, FROM_PUBLISHED = "Linear Decay", "WSD", "Eigencurve, published spectrum"
RECOMMENDATION = "Recommendation"
SEEDS_ALONE = "The last column says the same for each row alone, whose deviation from so few seeds is itself uncertain."
WITH_MOMENTUM = (paper.COSINE, LINEAR, WSD, paper.EIGENCURVE)


@dataclass(frozen=True)
class PairedTable:
    """The winners at one budget and momentum, and the runs that are missing."""

    title: str  # name of the network
    epochs: int  # budget
    momentum: float  # momentum of all runs
    rates: Sequence[float]  # rates that every schedule was tried with
    winners: Sequence[Winner]  # winner of each complete grid, with its trials so far
    missing: Sequence[Missing]  # what each incomplete schedule lacks
    published: Mapping[str, Sequence[str]]  # numbers that the paper prints for a schedule: training loss and accuracy

    @property
    def heading(self) -> str:
        """Heading of the section."""
        return f"{self.title}, {epochs_text(self.epochs)}" + (f", momentum {self.momentum:g}" if self.momentum else "")

    @property
    def results(self) -> ResultTable:
        """The table of means and deviations."""
        return ResultTable(self.heading, self.winners, self.published)

    def differences(self, reference: str = REFERENCE) -> dict[str, PairedDifference]:
        """Test accuracy of every other schedule minus that of ``reference``, in percentage points."""
        return paired_differences(self.results.trials("accuracy"), reference)

    def paragraphs(self) -> list[str]:
        """Everything that the page says about this table, after its heading."""
        parts = [missing_sentence(self.missing)]
        if self.winners:
            parts += [self.results.markdown(), " ".join([*self.results.claims(), edge_sentence(self)])]
        differences = self.differences()
        if differences:
            parts += [f"Test accuracy minus that of {REFERENCE}, in percentage points, seed by seed:"]
            pooled = seeds_sentence(differences, RESOLVED, 2, "percentage points")
            parts += [differences_table(differences, 2, "lower", "higher", RESOLVED), f"{pooled} {SEEDS_ALONE}"]
            trials = self.results.trials("accuracy")
            parts.append(together_sentence(trials, REFERENCE, minimise=False, digits=2, unit="percentage points"))
        parts.append(verdict(self))
        return [part for part in parts if part]


def edge_sentence(table: PairedTable) -> str:
    """Which winners have the smallest or the largest rate tried, so a rate outside the grid may be better."""
    ends = (min(table.rates), max(table.rates))
    at_edge = [f"{w.schedule} ({w.settings['lr']:g})" for w in table.winners if w.settings["lr"] in ends]
    if not at_edge:
        return "No winner has the smallest or the largest rate tried."
    return f"Winners at the edge of the rates tried: {', '.join(at_edge)}."


def missing_sentence(missing: Sequence[Missing]) -> str:
    """What is not finished; empty if everything is."""
    if not missing:
        return ""
    words = []
    for one in missing:
        grid = f"{one.num_grid} of the runs to choose a rate and " if one.num_grid else ""
        words.append(f"{one.schedule} ({grid}{one.num_trials} trial{'s' if one.num_trials != 1 else ''})")
    return f"**Not finished:** {'; '.join(words)}. A schedule appears below once its rate is chosen."


def verdict(table: PairedTable) -> str:
    """What the runs say about the paper's claim: Eigencurve above cosine decay and far above step decay."""
    found = {name: table.differences(name).get(paper.EIGENCURVE) for name in (paper.COSINE, paper.STEP)}
    sentences = [_against(table, name, difference) for name, difference in found.items() if difference is not None]
    return f"**Verdict on the paper's claim.** {' '.join([*sentences, _ahead(table)]).strip()}" if sentences else ""


def _ahead(table: PairedTable) -> str:
    """Which schedules that the paper does not have are above Eigencurve; empty if none is."""
    words = []
    for name, found in table.differences(paper.EIGENCURVE).items():
        if name not in table.published and found.sign == 1:
            low, high = found.interval
            words.append(f"{name} by {found.mean:.2f} ({low:+.2f} … {high:+.2f})")
    listed = f"Schedules that the paper's table does not have are above Eigencurve: {'; '.join(words)}."
    return listed if words and table.published else ""


def _against(table: PairedTable, other: str, difference: PairedDifference) -> str:
    low, high = difference.interval
    claimed = _published_gap(table, other)
    word = {1: "above", -1: "below", 0: "not resolved from"}[difference.sign]
    sentence = (
        f"Eigencurve is {word} {other} in test accuracy: {difference.mean:+.2f} percentage points, 95 % interval"
        f" {low:+.2f} … {high:+.2f} over {len(difference.values)} seeds."
    )
    if claimed is None:
        return sentence
    if difference.sign == 1:
        agrees = f"This agrees with the paper's {claimed:+.2f} in sign"
        size = "and in size" if low <= claimed <= high else "but not in size"
        return f"{sentence} {agrees} {size}."
    if difference.sign == -1:
        return f"{sentence} This contradicts the paper, which prints {claimed:+.2f}."
    within = "compatible" if low <= claimed <= high else "not compatible"
    return f"{sentence} These runs alone do not show a difference; the paper's {claimed:+.2f} is {within} with them."


def _published_gap(table: PairedTable, other: str) -> float | None:
    """The paper's accuracy of Eigencurve minus that of ``other``, in percentage points."""
    if not {other, paper.EIGENCURVE} <= set(table.published):
        return None
    ours, theirs = (float(table.published[name][1].split("±")[0]) for name in (paper.EIGENCURVE, other))
    return ours - theirs


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
    search = GridSearch(experiment, grids, SELECTION_SEEDS, seeds, request, REPORTED, final_settings)
    if request.part != "finished":
        search.winners()
    winners, missing = search.finished()
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
