"""The paper's tables on CIFAR-10 and CIFAR-100: which runs each is made of, and their order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eigencurve import _check
from eigencurve.experiments.data.cifar import (
    CIFAR10,
    CIFAR100,
    Cifar,
    download,
    is_published,
    load_cifar10,
    load_cifar100,
)
from eigencurve.experiments.data.folder import VARIABLE, data_folder
from eigencurve.experiments.engine.protocol import execute, search
from eigencurve.experiments.engine.request import Report, Request
from eigencurve.experiments.engine.winners import Row, standard_errors
from eigencurve.experiments.engine.workers import Workers
from eigencurve.experiments.images import paper
from eigencurve.experiments.images.experiment import ImageData, ImageExperiment
from eigencurve.experiments.images.report import SHOWN, ImageReport, Section
from eigencurve.experiments.images.scales import (
    NETWORKS,
    TITLES,
    Grid,
    Scale,
    base_settings,
    elastic_grid,
    ema_grid,
    final_settings,
    grids,
    scale_named,
    spectrum_settings,
    three_steps_grid,
)
from eigencurve.experiments.images.spectra import SpectrumExperiment, spectrum_name, spectrum_of
from eigencurve.experiments.images.spectra_report import Measured, SpectraReport
from eigencurve.runs.store import Outcome, Run, Store
from eigencurve.spectrum.spectrum import Spectrum

SELECTION_SEEDS = (100,)
SPECTRUM_SEED = 0
LOADERS: dict[str, Callable[[Path], Any]] = {"CIFAR-10": load_cifar10, "CIFAR-100": load_cifar100}


@dataclass(frozen=True, eq=False)
class Bench:
    """The data, the scale, and who runs what: all that the tables have in common.

    ``few`` are the images that spectra are measured after, perhaps fewer; ``published`` tells whether both are those
    that their authors publish, byte for byte.
    """

    data: ImageData
    few: ImageData
    scale: Scale
    store: Store
    workers: Workers
    progress: bool = False
    published: bool = True

    @property
    def folder(self) -> Path:
        """For checkpoints of runs under way, beside the store."""
        path = self.store.path.with_suffix(".checkpoints")
        path.mkdir(parents=True, exist_ok=True)
        return path

    def measure(self, every: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        """The spectra of networks trained with these settings; those in the store are not measured again."""
        experiment = SpectrumExperiment(self.few, self.folder)
        runs = [Run(settings, SPECTRUM_SEED) for settings in every]
        return execute(experiment, runs, self.store, self.workers, self.progress)

    def spectra(self, networks: Sequence[str]) -> dict[str, tuple[str, Spectrum]]:
        """By network: what settings call its spectrum, and the spectrum."""
        every = [spectrum_settings(self.scale, network) for network in networks]
        measured = [spectrum_of(outcome) for outcome in self.measure(every)]
        return {
            network: (spectrum_name(settings, spectrum), spectrum)
            for network, settings, spectrum in zip(networks, every, measured, strict=True)
        }

    def rows(self, grids_of: Mapping[str, Grid], spectra: Mapping[str, Spectrum]) -> list[Row]:
        """The winner of each grid on the validation images, and its trials on all training images."""
        experiment = ImageExperiment(self.data, spectra, self.folder, log=log_folder(self.store, self.scale.name))
        fresh = range(self.scale.num_trials)
        findings = search(
            experiment, grids_of, SELECTION_SEEDS, fresh, self.store, self.workers, self.progress, final_settings
        )
        num_tried = {name: len(grid) for name, grid in grids_of.items()}
        return SHOWN.rows(experiment, findings, num_tried, fresh, self.store)

    @property
    def caveat(self) -> str:
        """What to know of images that are not the published ones."""
        if self.published:
            return ""
        return (
            " The images are not the published files, byte for byte (re-encoded ones, for instance): compare rows with"
            " each other rather than with other pages."
        )

    def description(self, networks: Sequence[str]) -> list[str]:
        """Data, training and protocol, in paragraphs."""
        data, scale = self.data, self.scale
        widths = _widths({network: scale.divisors[network] for network in networks})
        validation = f"{data.num_validation:,} of the training images"
        number = "the paper's whole grids" if scale.num_tries is None else f"{scale.num_tries} tries for every schedule"
        return [
            f"Scale: {scale.name}. {data.train.name}, {len(data.train):,} training and {len(data.test):,} test images,"
            f" random crops and flips; SGD without momentum, batch size {scale.batch_size}, weight decay"
            f" {scale.weight_decay:g}. {widths}{self.caveat}",
            f"Settings are chosen by the accuracy on {validation}, training on the others with seed"
            f" {SELECTION_SEEDS[0]} ({number}). The winner is trained on all training images and measured on the test"
            f" images with seeds 0 … {scale.num_trials - 1}: mean ± standard deviation of these trials. Training loss"
            " is the mean cross entropy over the last epoch, without the weight decay's part. A star marks rows with a"
            " trial whose loss exploded; such trials are counted and not averaged.",
        ]


def bench_for(request: Request, cifar: Cifar = CIFAR10) -> Bench:
    """The bench on one of the two data sets, found as the request says."""
    scale = scale_named(request.scale)
    folder = request.data or data_folder()
    if folder is None:
        remedy = f"Or set {VARIABLE}."
        _check.refuse("reproduce", "data", f"the folder that holds {cifar.folder}", None, remedy)
    if request.download:
        download(cifar, folder)
    train, test = LOADERS[cifar.name](folder)
    data, few = (ImageData.chosen(train, test, *sizes) for sizes in (scale.images, scale.few_images))
    published = is_published(cifar, folder)
    return Bench(data, few, scale, request.store, request.workers, request.progress, published)


def make_spectra(request: Request) -> SpectraReport:
    """Spectra of the trained networks."""
    bench = bench_for(request)
    every = [spectrum_settings(bench.scale, network) for network in NETWORKS]
    return _spectra_report("spectra", bench, every, request)


def make_unshrunk(request: Request) -> SpectraReport:
    """The spectrum of a ResNet-18 of full width, which the paper had to shrink to measure."""
    bench = bench_for(request)
    settings = {**spectrum_settings(bench.scale, "resnet18"), **bench.scale.unshrunk}
    return _spectra_report("spectra-unshrunk", bench, [settings], request)


def _spectra_report(name: str, bench: Bench, every: Sequence[dict[str, Any]], request: Request) -> SpectraReport:
    outcomes = bench.measure(every)
    measured = [Measured(settings, outcome) for settings, outcome in zip(every, outcomes, strict=True)]
    folder = request.data or data_folder()
    return SpectraReport(name, bench.few, bench.scale.name, measured, folder, bench.caveat)


def make_cifar10(request: Request) -> ImageReport:
    """Five schedules, Elastic Step Decay and the numerically best one, for each network and budget."""
    bench = bench_for(request)
    spectra = bench.spectra(bench.scale.networks)
    sections = []
    for epochs in budgets(request, bench.scale.epochs):
        for network, (name, spectrum) in spectra.items():
            rows = bench.rows(grids(bench.scale, network, epochs, name), {name: spectrum})
            sections.append(Section(heading(network, epochs), rows, paper.CIFAR10.get((network, epochs), {})))
    title = "CIFAR-10: training losses and test accuracy of different schedules"
    description = [*bench.description(bench.scale.networks), _about_spectra(bench, bench.scale.networks)]
    return ImageReport("cifar10", title, description, sections)


def make_reuse(request: Request) -> ImageReport:
    """GoogLeNet and VGG16 with their own spectrum and with ResNet-18's."""
    bench = bench_for(request)
    bench = replace(bench, data=bench.few)
    networks = bench.scale.reuse_networks
    spectra = bench.spectra(["resnet18", *networks])
    reused, resnet = spectra["resnet18"]
    sections = []
    for epochs in budgets(request, bench.scale.epochs):
        for network in networks:
            name, spectrum = spectra[network]
            every = grids(bench.scale, network, epochs, name, reused)
            wanted = bench.scale.reuse_schedules or tuple(every)
            some = {key: grid for key, grid in every.items() if key in wanted}
            rows = bench.rows(some, {name: spectrum, reused: resnet})
            sections.append(Section(heading(network, epochs), rows, paper.CIFAR10.get((network, epochs), {})))
    notes = [_compared(section, paper.EIGENCURVE, paper.REUSED) for section in sections]
    title = "CIFAR-10: ResNet-18's spectrum reused for other networks"
    description = [*bench.description(networks), _about_spectra(bench, ["resnet18", *networks])]
    return ImageReport("reuse", title, description, sections, notes)


def make_ema(request: Request) -> ImageReport:
    """Constant rates with averaged weights against Eigencurve."""
    bench = bench_for(request)
    spectra = bench.spectra(bench.scale.networks)
    sections = []
    for epochs in budgets(request, (bench.scale.ema_epochs,)):
        for network, (name, spectrum) in spectra.items():
            averaged = ema_grid(bench.scale, base_settings(bench.scale, network, epochs))
            curve = grids(bench.scale, network, epochs, name)[paper.EIGENCURVE]
            rows = bench.rows({paper.EMA: averaged, paper.EIGENCURVE: curve}, {name: spectrum})
            known = {paper.EIGENCURVE: paper.CIFAR10[network, 100][paper.EIGENCURVE]}
            published = {paper.EMA: paper.EMA_NUMBERS[network], **known} if epochs == 100 else {}
            sections.append(Section(heading(network, epochs), rows, published))
    notes = [
        *(_compared(section, paper.EMA, paper.EIGENCURVE) for section in sections),
        "The averaged weights are w̄ ← α w̄ + (1 - α) w from the first step on, with batch norm's statistics averaged in"
        " the same way; the training loss is that of the weights that are trained, not of the average.",
    ]
    title = "CIFAR-10: averaged weights and Eigencurve"
    return ImageReport("ema", title, bench.description(bench.scale.networks), sections, notes)


def make_elastic(request: Request) -> ImageReport:
    """Elastic Step Decay on CIFAR-10 and CIFAR-100, wherever the data are."""
    sections, description, missing = [], [], []
    for place, cifar in enumerate((CIFAR10, CIFAR100)):
        try:
            bench = bench_for(request, cifar)
        except FileNotFoundError:
            missing.append(f"{cifar.name} was not at hand: its part of the paper's table is left out.")
            continue
        description = bench.description(bench.scale.networks)
        for epochs in budgets(request, bench.scale.epochs):
            for network in bench.scale.networks:
                every, base = grids(bench.scale, network, epochs, ""), base_settings(bench.scale, network, epochs)
                chosen = {
                    paper.INVERSE: every[paper.INVERSE], paper.THREE_STEPS: three_steps_grid(bench.scale, base),
                    paper.COSINE: every[paper.COSINE], paper.ELASTIC: elastic_grid(bench.scale, base),
                }  # fmt: skip
                numbers = paper.ELASTIC_ACCURACY.get((network, epochs), {})
                published = {name: ("–", pair[place]) for name, pair in numbers.items()}
                title = f"{cifar.name}, {heading(network, epochs)}"
                sections.append(Section(title, bench.rows(chosen, {}), published))
    if not sections:
        raise FileNotFoundError("elastic: neither CIFAR-10 nor CIFAR-100 was found. Name their folder with --data.")
    return ImageReport("elastic", "Elastic Step Decay on CIFAR-10 and CIFAR-100", description, sections, missing)


def log_folder(store: Store, scale: str) -> Path | None:
    """Where TensorBoard finds the runs of the paper's scale, beside the store; shorter ones are in the store alone."""
    return store.path.with_suffix(".logs") if scale == "paper" else None


def budgets(request: Request, usual: Sequence[int]) -> list[int]:
    """The budgets asked for, or the scale's."""
    return [_check.whole("reproduce", "epochs", epochs, minimum=1) for epochs in request.epochs] or list(usual)


def heading(network: str, epochs: int) -> str:
    """For example ``ResNet-18, 10 epochs``."""
    return f"{TITLES[network]}, {epochs} epoch" + ("s" if epochs > 1 else "")


def _about_spectra(bench: Bench, networks: Sequence[str]) -> str:
    how = bench.scale.spectrum
    words = [
        f"{TITLES[network]} with {_divided(how.divisors[network])} after {how.training[network][0]} epochs of"
        f" {len(bench.few.train):,} images"
        for network in networks
    ]
    return (
        f"Eigencurve and the numerically best schedule use spectra measured by this project ({'; '.join(words)}, on"
        f" {how.num_images} images; see the table `spectra`). β = 2 below 100 epochs and 1.000005 from there on. The"
        " numerically best schedule is that of the quadratic loss with the spectrum, noise 1 and initial error 1 in"
        " every direction and rates up to 1/L, scaled to the searched initial rate."
    )


def _compared(section: Section, first: str, second: str) -> str:
    """How two of a section's rows compare, in a sentence."""
    rows = {row.schedule: row.trials["accuracy"] for row in section.rows}
    one, two = rows[first], rows[second]
    if one.mean is None or two.mean is None:
        return f"{section.heading}: {first if one.mean is None else second} diverged in every trial."
    apart = standard_errors(one, two)
    return (
        f"{section.heading}: {second} has {abs(two.mean - one.mean):.2f} percentage points"
        f" {'more' if two.mean >= one.mean else 'less'} accuracy than {first}, {apart:.1f} standard errors."
    )


def _widths(divisors: Mapping[str, int]) -> str:
    if set(divisors.values()) == {1}:
        return "The networks have their full widths."
    words = [f"{TITLES[network]} by {divisor}" for network, divisor in divisors.items()]
    return f"Every width of the networks is divided: {', '.join(words)}."


def _divided(divisor: int) -> str:
    return "full widths" if divisor == 1 else f"widths divided by {divisor}"


MAKERS: dict[str, Callable[[Request], Report]] = {
    "cifar10": make_cifar10,
    "spectra": make_spectra,
    "spectra-unshrunk": make_unshrunk,
    "reuse": make_reuse,
    "ema": make_ema,
    "elastic": make_elastic,
}
