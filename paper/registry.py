"""The registry: every table and figure that ``python -m paper`` makes.

A maker is named, not imported, so listing the registry needs neither PyTorch nor matplotlib.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import cast

from paper import checks
from paper.engine.request import Request
from paper.page import ResultsPage

INSTALL = "pip install --editable '.[plot,torch]' --requirement paper/requirements.txt"


@dataclass(frozen=True)
class Entry:
    """A table or figure."""

    name: str  # name on the command line
    shows: str  # what the page shows
    needs: str  # data and time that it takes
    maker: str  # function `Request -> ResultsPage`, as `"module:function"` below `paper`
    parts: tuple[str, ...] = ()  # parts of the runs that `--part` can name; empty if the page needs all of them

    def make(self, request: Request) -> ResultsPage:
        """Import the maker and make the page.

        Raises:
            ValueError: The page has no such part.
            ImportError: A package that the experiment needs is not installed.
        """
        if request.part is not None and request.part not in self.parts:
            known = " or ".join(map(repr, self.parts)) or "left out"
            checks.refuse("paper", "part", f"{known} for {self.name}", request.part)
        module, _, function = self.maker.partition(":")
        try:
            maker = getattr(import_module(f"paper.{module}"), function)
        except ImportError as error:
            cause = error.__cause__ or error
            if not isinstance(cause, ModuleNotFoundError):
                raise
            raise ImportError(f"{self.name}: {cause.name} is not installed. Run: {INSTALL}") from error
        return cast(ResultsPage, maker(request))


CIFAR10 = "cifar-10-batches-py/ under --data or EIGENCURVE_DATA (or --download)"
IMAGENET = "ImageNet's train/ and val/ under --data or EIGENCURVE_DATA; GPUs, which share each run"
SPECTRA = "the published spectra, spectra/*.txt under --data or EIGENCURVE_DATA"
CURVES = "the published training runs, curves/index.json and its logs under --data or EIGENCURVE_DATA"
CHECKPOINT = "checkpoints/resnet20_cifar10.npz and cifar10_lossless_subset.npz under EIGENCURVE_DATA"
ENTRIES = (
    Entry(
        "ridge", 'table "Ridge regression: training loss gaps" and the spectrum of that problem',
        "a4a (or --download; without it, scikit-learn's data); minutes on 2 cores", "ridge.tables:make",
    ),
    Entry(
        "rates", 'table "Convergence rate of SGD with common schedulers", measured', "nothing; half a minute",
        "theory.rates:make",
    ),
    Entry(
        "extra-terms", "table of extra terms, with exact losses and certificates", f"{SPECTRA}; five minutes",
        "theory.extra_terms:make",
    ),
    Entry(
        "tightness", "not in the paper: how tight each of its bounds is on random problems", "nothing; half a minute",
        "theory.tightness:make",
    ),
    Entry(
        "best", "not in the paper: the numerically best schedule, and how far every other is from the certificate",
        f"{SPECTRA}; half a minute", "theory.best:make",
    ),
    Entry(
        "cosine", "how close Eigencurve is to cosine decay on the published spectra and on power laws",
        f"{SPECTRA}; seconds", "theory.cosine:make",
    ),
    Entry(
        "figures", "the figures of spectra and schedules that need no training",
        "nothing, but with the published spectra it draws those; seconds", "theory.paper_figures:make",
    ),
    Entry(
        "cifar10", 'table "CIFAR-10: training losses and test accuracy" and its figures',
        f"{CIFAR10}; days on GPUs, or with --scale laptop an hour on 2 cores", "images.tables:make_cifar10",
    ),
    Entry(
        "cifar10-paired", "not in the paper: ten schedules searched equally, differences seed by seed, momentum",
        f"{CIFAR10}; with --scale desk four hours on 2 cores", "images.paired:make", parts=("finished",),
    ),
    Entry(
        "spectra", "figures of the estimated eigenvalue distributions, and the spectra themselves",
        f"{CIFAR10}; with --scale laptop half an hour on 2 cores", "images.tables:make_spectra",
    ),
    Entry(
        "spectra-unshrunk", "not in the paper: the spectrum of a ResNet-18 of full width",
        f"{CIFAR10}; with --scale laptop half an hour on 2 cores", "images.tables:make_unshrunk",
    ),
    Entry(
        "reuse", "table of GoogLeNet and VGG16 with ResNet-18's spectrum",
        f"{CIFAR10}; with --scale laptop half an hour on 2 cores", "images.tables:make_reuse",
    ),
    Entry(
        "ema", 'table "Exponential Moving Average"', f"{CIFAR10}; with --scale laptop ten minutes on 2 cores",
        "images.tables:make_ema",
    ),
    Entry(
        "elastic", 'table "Elastic Step Decay on CIFAR-10/CIFAR-100"',
        f"{CIFAR10}, and cifar-100-python/; with --scale laptop ten minutes on 2 cores", "images.tables:make_elastic",
    ),
    Entry(
        "imagenet-elastic", 'table "Elastic Step Decay on ImageNet-1k"', IMAGENET, "images.imagenet_tables:make_elastic"
    ),
    Entry(
        "imagenet-cosine-power", 'table "Cosine-power Decay on ImageNet"', IMAGENET,
        "images.imagenet_tables:make_cosine_power",
    ),
    Entry(
        "language", "table of an LSTM on the Penn Treebank with Elastic Step Decay",
        "ptb.*.txt under --data, or ptb/ under EIGENCURVE_DATA; with --scale laptop half an hour on 2 cores",
        "language.tables:make",
    ),
    Entry(
        "prediction", "not in the paper: losses that a measured quadratic predicts, next to those of real runs",
        f"a4a; {CHECKPOINT}, or it skips what needs them; 20 minutes on one core", "prediction.report:make",
    ),
    Entry(
        "forecast", "not in the paper: forecasts of published training runs from logs of others, and the best schedule",
        f"{CURVES}; a minute", "forecasts.report:make",
    ),
    Entry(
        "bytes", "not in the paper: a byte-level transformer with AdamW; a forecast tested on held-back runs",
        "ptb.*.txt under --data, or ptb/ under EIGENCURVE_DATA; with --scale desk three hours on 2 cores",
        "byte_text.tables:make", parts=("first", "rest", "finished"),
    ),
    Entry(
        "bytes-again", "not in the paper: a second forecast of the same transformer, tested on other schedules",
        "logs of bytes under --data, such as results/bytes_curves; ptb/ under EIGENCURVE_DATA; with --scale desk an "
        "hour on 2 cores", "byte_text.again:make", parts=("finished",),
    ),
    Entry(
        "noise", "not in the paper: the gradient noise and the spectrum of six networks during training",
        f"{CIFAR10}, {CHECKPOINT} and ptb/; an hour on one core, or seconds with --scale smoke", "studies.noise:make",
    ),
)  # fmt: skip
REGISTRY = {entry.name: entry for entry in ENTRIES}


def entry_named(name: str) -> Entry:
    """The entry of that name."""
    if name not in REGISTRY:
        checks.refuse("paper", "name", "one of " + ", ".join(REGISTRY), name)
    return REGISTRY[name]
