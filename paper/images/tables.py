"""The paper's tables on CIFAR-10 and CIFAR-100: which runs each page is made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from eigencurve import Spectrum
from eigencurve.runs import Outcome, Run
from paper.data.cifar import CIFAR10, CIFAR100, Cifar, download, is_published, load_cifar
from paper.data.folder import data_folder, require_folder
from paper.engine.claims import standard_errors
from paper.engine.protocol import execute
from paper.engine.request import Request
from paper.engine.winners import GridSearch, Winner
from paper.images import paper
from paper.images.experiment import ImageData, image_experiment
from paper.images.report import REPORTED, ResultTable, image_page
from paper.images.scales import (
    NETWORKS,
    SCALES,
    TITLES,
    Grid,
    Scale,
    base_settings,
    elastic_grid,
    ema_grid,
    final_settings,
    grids,
    spectrum_settings,
    three_steps_grid,
)
from paper.images.spectra import spectrum_experiment, spectrum_name, spectrum_of
from paper.images.spectra_report import MeasuredSpectrum, spectra_page
from paper.page import ResultsPage, epochs_text
from paper.training.settings import PRECISION_WORDS

SELECTION_SEEDS = (100,)
SPECTRUM_SEED = 0


@dataclass(frozen=True, eq=False)
class ImageSetup:
    """What all tables share."""

    data: ImageData  # images to train on
    few: ImageData  # images to measure and to reuse spectra on; perhaps fewer
    scale: Scale  # size of the experiments
    request: Request  # store, workers and progress
    published: bool = True  # whether the images are the published files, byte for byte

    def measure(self, every: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        """Train networks with these settings and measure their spectra, unless the store already has them."""
        experiment = spectrum_experiment(self.few, self.request.checkpoints)
        runs = [Run(settings, SPECTRUM_SEED) for settings in every]
        return execute(experiment, runs, self.request.store, self.request.workers, self.request.progress)

    def is_measured(self, settings: Mapping[str, Any]) -> bool:
        """Whether the store has the spectrum of a run with these settings."""
        experiment = spectrum_experiment(self.few, self.request.checkpoints)
        return None not in self.request.store.outcomes(experiment.name, [Run(settings, SPECTRUM_SEED)])

    def spectra(self, networks: Sequence[str]) -> dict[str, tuple[str, Spectrum]]:
        """The name (in settings) and the spectrum of each network."""
        every = [spectrum_settings(self.scale, network) for network in networks]
        measured = [spectrum_of(outcome) for outcome in self.measure(every)]
        return {
            network: (spectrum_name(settings, spectrum), spectrum)
            for network, settings, spectrum in zip(networks, every, measured, strict=True)
        }

    def winners(self, grids_of: Mapping[str, Grid], spectra: Mapping[str, Spectrum]) -> list[Winner]:
        """Choose the winner of each grid on the validation images, and run its trials on all training images."""
        request, fresh = self.request, range(self.scale.num_trials)
        experiment = image_experiment(self.data, spectra, request.checkpoints, log=request.tensorboard)
        search = GridSearch(experiment, grids_of, SELECTION_SEEDS, fresh, request, REPORTED, final_settings)
        return search.winners()

    @property
    def caveat(self) -> str:
        """A warning if the images are not the published ones."""
        if self.published:
            return ""
        return (
            " The images differ from the published files (they are re-encoded, for example): compare rows with each"
            " other, not with other pages."
        )

    def description(self, networks: Sequence[str]) -> list[str]:
        """Paragraphs about data, training and protocol."""
        data, scale = self.data, self.scale
        tries = "the paper's whole grids" if scale.num_tries is None else f"{scale.num_tries} tries for every schedule"
        return [
            f"Scale: {scale.name}. {data.train.name}, {len(data.train):,} training and {len(data.test):,} test images,"
            f" random crops and flips. SGD without momentum, batch size {scale.batch_size}, weight decay"
            f" {scale.weight_decay:g}, {PRECISION_WORDS[scale.precision]}."
            f" {_widths({network: scale.divisors[network] for network in networks})}"
            f"{self.caveat}",
            f"Settings are chosen by the accuracy on {data.num_validation:,} of the training images after training on"
            f" the others with seed {SELECTION_SEEDS[0]} ({tries}). The winner is trained on all training images and"
            f" measured on the test images with seeds 0 … {scale.num_trials - 1}; the tables show mean ± standard"
            " deviation of these trials. Training loss is the mean cross entropy over the last epoch, without the"
            " weight decay term. A star means that a trial diverged; diverged trials are counted but not averaged.",
        ]


def setup_for(request: Request, cifar: Cifar = CIFAR10) -> ImageSetup:
    """The setup on one of the two data sets."""
    scale = request.scale_of(SCALES)
    folder = require_folder(request.data, f"{cifar.folder}/")
    if request.download:
        download(cifar, folder)
    train, test = load_cifar(folder, cifar)
    data, few = (ImageData.chosen(train, test, *sizes) for sizes in (scale.images, scale.few_images))
    return ImageSetup(data, few, scale, request, is_published(cifar, folder))


def make_spectra(request: Request) -> ResultsPage:
    """The spectra of the trained networks."""
    setup = setup_for(request)
    return _spectra_page("spectra", setup, [spectrum_settings(setup.scale, network) for network in NETWORKS])


def make_unshrunk(request: Request) -> ResultsPage:
    """The spectrum of a ResNet-18 of full width; the paper divides its widths to measure it."""
    setup = setup_for(request)
    settings = {**spectrum_settings(setup.scale, "resnet18"), **setup.scale.unshrunk}
    return _spectra_page("spectra-unshrunk", setup, [settings])


def _spectra_page(name: str, setup: ImageSetup, every: Sequence[dict[str, Any]]) -> ResultsPage:
    measured = [MeasuredSpectrum(*pair) for pair in zip(every, setup.measure(every), strict=True)]
    about = (
        f"Scale: {setup.scale.name}. Each network is trained on {len(setup.few.train):,} images with momentum 0.9, and"
        " the rate is divided by 10 at the milestones. Its spectrum is that of the Hessian of the mean loss on the"
        " first images, in eval mode, estimated by stochastic Lanczos quadrature and sharpened. Eigenvalues are |λ| +"
        f" weight decay. How spectrum and noise change during training is on [another page](noise.md).{setup.caveat}"
    )
    return spectra_page(name, about, measured, setup.request.data or data_folder())


def make_cifar10(request: Request) -> ResultsPage:
    """Five schedules, Elastic Step Decay and the numerically best schedule, for each network and budget."""
    setup = setup_for(request)
    networks = setup.scale.networks
    spectra = setup.spectra(networks)
    tables = []
    for epochs in request.budgets(setup.scale.epochs):
        for network, (name, spectrum) in spectra.items():
            winners = setup.winners(grids(setup.scale, network, epochs, name), {name: spectrum})
            tables.append(ResultTable(_heading(network, epochs), winners, paper.CIFAR10.get((network, epochs), {})))
    title = "CIFAR-10: training losses and test accuracy of different schedules"
    return image_page("cifar10", title, [*setup.description(networks), _about_spectra(setup, networks)], tables)


def make_reuse(request: Request) -> ResultsPage:
    """GoogLeNet and VGG16 with their own spectrum and with ResNet-18's."""
    setup = setup_for(request)
    setup = replace(setup, data=setup.few)
    networks = setup.scale.reuse_networks
    spectra = setup.spectra(["resnet18", *networks])
    reused, resnet = spectra["resnet18"]
    tables = []
    for epochs in request.budgets(setup.scale.epochs):
        for network in networks:
            name, spectrum = spectra[network]
            every = grids(setup.scale, network, epochs, name, reused)
            wanted = setup.scale.reuse_schedules or tuple(every)
            some = {key: grid for key, grid in every.items() if key in wanted}
            winners = setup.winners(some, {name: spectrum, reused: resnet})
            tables.append(ResultTable(_heading(network, epochs), winners, paper.CIFAR10.get((network, epochs), {})))
    notes = [_comparison(table, paper.EIGENCURVE, paper.REUSED) for table in tables]
    description = [*setup.description(networks), _about_spectra(setup, ["resnet18", *networks])]
    return image_page("reuse", "CIFAR-10: ResNet-18's spectrum reused for other networks", description, tables, notes)


def make_ema(request: Request) -> ResultsPage:
    """Constant rates with averaged weights, compared with Eigencurve."""
    setup = setup_for(request)
    spectra = setup.spectra(setup.scale.networks)
    tables = []
    for epochs in request.budgets((setup.scale.ema_epochs,)):
        for network, (name, spectrum) in spectra.items():
            averaged = ema_grid(setup.scale, base_settings(setup.scale, network, epochs))
            curve = grids(setup.scale, network, epochs, name)[paper.EIGENCURVE]
            winners = setup.winners({paper.EMA: averaged, paper.EIGENCURVE: curve}, {name: spectrum})
            known = {paper.EIGENCURVE: paper.CIFAR10[network, 100][paper.EIGENCURVE]}
            published = {paper.EMA: paper.EMA_NUMBERS[network], **known} if epochs == 100 else {}
            tables.append(ResultTable(_heading(network, epochs), winners, published))
    notes = [
        *(_comparison(table, paper.EMA, paper.EIGENCURVE) for table in tables),
        "The averaged weights are w̄ ← α w̄ + (1 - α) w from the first step on; the statistics of batch norm are"
        " averaged in the same way. The training loss is that of the trained weights, not of the average.",
    ]
    title = "CIFAR-10: averaged weights and Eigencurve"
    return image_page("ema", title, setup.description(setup.scale.networks), tables, notes)


def make_elastic(request: Request) -> ResultsPage:
    """Elastic Step Decay on CIFAR-10 and CIFAR-100; a data set that is missing is left out."""
    tables, description, missing = [], [], []
    for place, cifar in enumerate((CIFAR10, CIFAR100)):
        try:
            setup = setup_for(request, cifar)
        except FileNotFoundError:
            missing.append(f"{cifar.name} is missing, so its part of the paper's table is left out.")
            continue
        description = setup.description(setup.scale.networks)
        for epochs in request.budgets(setup.scale.epochs):
            for network in setup.scale.networks:
                every, base = grids(setup.scale, network, epochs, ""), base_settings(setup.scale, network, epochs)
                chosen = {
                    paper.INVERSE: every[paper.INVERSE], paper.THREE_STEPS: three_steps_grid(setup.scale, base),
                    paper.COSINE: every[paper.COSINE], paper.ELASTIC: elastic_grid(setup.scale, base),
                }  # fmt: skip
                numbers = paper.ELASTIC_ACCURACY.get((network, epochs), {})
                published = {name: ("–", pair[place]) for name, pair in numbers.items()}
                heading = f"{cifar.name}, {_heading(network, epochs)}"
                tables.append(ResultTable(heading, setup.winners(chosen, {}), published))
    if not tables:
        raise FileNotFoundError("elastic: neither CIFAR-10 nor CIFAR-100 was found. Pass their folder with --data.")
    return image_page("elastic", "Elastic Step Decay on CIFAR-10 and CIFAR-100", description, tables, missing)


def _heading(network: str, epochs: int) -> str:
    return f"{TITLES[network]}, {epochs_text(epochs)}"


def _about_spectra(setup: ImageSetup, networks: Sequence[str]) -> str:
    how = setup.scale.spectrum
    words = [
        f"{TITLES[network]} with {_divided(how.divisors[network])} after {epochs_text(how.training[network][0])} of"
        f" {len(setup.few.train):,} images"
        for network in networks
    ]
    return (
        f"Eigencurve and the numerically best schedule use spectra measured by this project: {'; '.join(words)}; each"
        f" on {how.num_images} images (`python -m paper spectra`). β is 2 below 100 epochs and 1.000005 from there"
        " on. The numerically best schedule is that of the quadratic loss with the measured spectrum, noise 1 and"
        " initial error 1 in every direction and rates up to 1/L, scaled to the searched initial rate."
    )


def _comparison(table: ResultTable, first: str, second: str) -> str:
    """A sentence that compares the accuracy of two schedules."""
    trials = table.trials("accuracy")
    one, two = trials[first], trials[second]
    if one.mean is None or two.mean is None:
        return f"{table.heading}: {first if one.mean is None else second} diverged in every trial."
    sign = "higher" if two.mean >= one.mean else "lower"
    return (
        f"{table.heading}: the accuracy of {second} is {abs(two.mean - one.mean):.2f} percentage points {sign} than"
        f" that of {first} ({standard_errors(one, two):.1f} standard errors)."
    )


def _widths(divisors: Mapping[str, int]) -> str:
    if set(divisors.values()) == {1}:
        return "The networks have their full widths."
    words = [f"{TITLES[network]} by {divisor}" for network, divisor in divisors.items()]
    return f"All widths are divided: {', '.join(words)}."


def _divided(divisor: int) -> str:
    return "full widths" if divisor == 1 else f"widths divided by {divisor}"
