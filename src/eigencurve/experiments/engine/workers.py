"""Who runs an experiment: processes of this machine, or a Ray cluster, through the same joblib calls."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import joblib

from eigencurve import _check
from eigencurve._heap import keep_freed_memory

BACKENDS = ("loky", "sequential", "ray")


@dataclass(frozen=True)
class Workers:
    """How many workers, and of which kind.

    Attributes:
        count: -1 for all cores (of the cluster).
        backend: ``"loky"``, processes of this machine; ``"sequential"``, this process; ``"ray"``, a Ray cluster.
        address: of the Ray cluster; None starts one on this machine.
    """

    count: int = -1
    backend: str = "loky"
    address: str | None = None

    def __post_init__(self) -> None:
        _check.choice("Workers", "backend", self.backend, BACKENDS)
        if self.count != -1:
            _check.whole("Workers", "count", self.count, minimum=1, remedy="-1 takes all cores.")
        if self.address is not None and self.backend != "ray":
            _check.refuse("Workers", "address", "left out unless backend='ray'", self.address)


def results(workers: Workers, tasks: Iterator[Any]) -> Iterator[Any]:
    """What the tasks (made by ``joblib.delayed``) return, as they come; tasks are taken only as workers get free.

    joblib's Ray backend cannot give results back one by one, so there the tasks go out a few at a time.
    """
    if workers.backend != "ray":
        settings: dict[str, Any] = {
            "backend": workers.backend, "return_as": "generator_unordered", "pre_dispatch": "2*n_jobs",
            # Of processes of our own, which train networks most of the time; joblib leaves this one alone.
            "initializer": keep_freed_memory,
        }  # fmt: skip
        yield from joblib.Parallel(n_jobs=workers.count, batch_size=1, **settings)(tasks)
        return
    num_at_once = 2 * _join_cluster(workers)
    with joblib.Parallel(n_jobs=workers.count, backend="ray", batch_size=1) as pool:
        while few := list(islice(tasks, num_at_once)):
            yield from pool(few)


def _join_cluster(workers: Workers) -> int:
    """Connect to the cluster, once; how many workers there are."""
    try:
        import ray
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise ImportError("backend='ray' needs Ray: pip install eigencurve[ray]") from error
    if not ray.is_initialized():
        count = None if workers.address or workers.count == -1 else workers.count
        ray.init(address=workers.address, num_cpus=count, log_to_driver=False, logging_level="error")
    register_ray()
    return int(ray.cluster_resources().get("CPU", 1)) if workers.count == -1 else workers.count
