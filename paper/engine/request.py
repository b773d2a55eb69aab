"""What a user asks of an experiment: data, scale, budgets, workers, and the store for its runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TypeVar

from eigencurve.runs import Store
from paper import checks

Scale = TypeVar("Scale")
BACKENDS = ("loky", "sequential", "ray")


@dataclass(frozen=True)
class Workers:
    """The worker processes that run an experiment."""

    count: int = -1  # number of workers; -1 for one per core (of the cluster, with Ray)
    # `"loky"` for processes on this machine, `"sequential"` for this process, `"ray"` for a Ray cluster.
    backend: str = "loky"
    address: str | None = None  # address of the Ray cluster; None starts one on this machine

    def __post_init__(self) -> None:
        checks.choice("Workers", "backend", self.backend, BACKENDS)
        if self.count != -1:
            checks.whole("Workers", "count", self.count, minimum=1, remedy="Pass -1 for all cores.")
        if self.address is not None and self.backend != "ray":
            checks.refuse("Workers", "address", "left out unless backend='ray'", self.address)


@dataclass(frozen=True)
class Request:
    """How to make one page of results."""

    store_path: Path = Path("eigencurve.sqlite")  # file of finished runs
    workers: Workers = field(default_factory=Workers)  # worker processes
    data: Path | None = None  # file or folder to use instead of the default data
    download: bool = False  # whether missing data may be downloaded
    epochs: Sequence[int] = ()  # budgets to run; empty for those of the scale
    progress: bool = False  # whether to draw progress bars
    scale: str = "paper"  # size of the deep-learning experiments: `"paper"`, `"desk"`, `"laptop"` or `"smoke"`
    # Part of the runs to do, for pages that have parts (see the registry): `"finished"` does none and makes the page
    # from the finished runs. None does all runs.
    part: str | None = None

    @cached_property
    def store(self) -> Store:
        """The store of finished runs; the file is created on first use."""
        return Store(self.store_path)

    @cached_property
    def checkpoints(self) -> Path:
        """The folder next to the store that keeps checkpoints of unfinished runs; created on first use."""
        folder = self.store_path.with_suffix(".checkpoints")
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @property
    def tensorboard(self) -> Path | None:
        """The folder next to the store for TensorBoard logs; None unless the scale is ``"paper"``."""
        return self.store_path.with_suffix(".logs") if self.scale == "paper" else None

    def scale_of(self, scales: Mapping[str, Scale]) -> Scale:
        """The requested one of an experiment's scales."""
        return scales[checks.choice("paper", "scale", self.scale, tuple(scales))]

    def budgets(self, default: Sequence[int], minimum: int = 1) -> list[int]:
        """The requested numbers of epochs, or ``default`` if there are none."""
        return [checks.whole("paper", "epochs", e, minimum=minimum) for e in self.epochs] or list(default)
