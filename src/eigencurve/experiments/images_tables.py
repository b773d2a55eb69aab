"""The paper's tables on CIFAR-10 and CIFAR-100: which runs each is made of, and their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from eigencurve import _check
from eigencurve.experiments.images import ImageData, ImageExperiment
from eigencurve.experiments.images_scales import (
    Grid,
    Scale,
    base_settings,
    ema_grid,
    final_settings,
    grids,
    spectrum_settings,
    three_steps_grid,
)
from eigencurve.experiments.protocol import Finding, execute, search
from eigencurve.experiments.spectra import SpectrumExperiment, spectrum_name, spectrum_of
from eigencurve.experiments.store import Outcome, Run, Store
from eigencurve.experiments.workers import Workers
from eigencurve.spectrum.spectrum import Spectrum

SELECTION_SEEDS = (100,)
SPECTRUM_SEED = 0


@dataclass(frozen=True, eq=False)
class Bench:
    """The data, the scale, and who runs what: all that the tables have in common."""

    data: ImageData
    scale: Scale
    store: Store
    workers: Workers
    progress: bool = False

    @property
    def folder(self) -> Path:
        """For checkpoints of runs under way, beside the store."""
        path = self.store.path.with_suffix(".checkpoints")
        path.mkdir(parents=True, exist_ok=True)
        return path

    def measure(self, every: Sequence[Mapping[str, Any]]) -> list[Outcome]:
        """The spectra of networks trained with these settings; those in the store are not measured again."""
        experiment = SpectrumExperiment(self.data, self.folder)
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

    def search(self, grids_of: Mapping[str, Grid], spectra: Mapping[str, Spectrum]) -> list[Finding]:
        """The winner of each grid on the validation images, and its trials on all training images."""
        seeds = SELECTION_SEEDS, range(self.scale.num_trials)
        return search(
            self.experiment(spectra), grids_of, *seeds, self.store, self.workers, self.progress, final_settings
        )

    def experiment(self, spectra: Mapping[str, Spectrum]) -> ImageExperiment:
        """Training runs that may use these spectra."""
        return ImageExperiment(self.data, spectra, self.folder)
