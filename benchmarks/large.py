"""Time and memory of spectrum estimates from 10,000 parameters to GPT-2: ``python -m benchmarks.large``."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from benchmarks.memory_modes import peak_bytes
from matplotlib.figure import Figure
from torch import Tensor

from eigencurve.figures.style import style
from eigencurve.hessian import HessianOperator, estimate_spectrum
from paper.engine.pool import in_new_process
from paper.models.making import drawn_from
from paper.models.transformer import Transformer, gpt2, next_byte_loss
from paper.page import ResultsPage, made_by_line, markdown_table

SEED = 0
NUM_STEPS = 20
NUM_TOKENS = 64
# All vectors together; for GPT-2, this is 4 GB.
NUM_VECTORS = 8
GPT2_BUDGET = 4_000_000_000
# Number of tokens, width, layers and heads; None is GPT-2.
SIZES = ((128, 16, 2, 2), (256, 48, 3, 4), (1024, 128, 4, 4), (8192, 320, 6, 5), (16384, 512, 7, 8), None)
COLUMNS = (
    "parameters", "product (CPU s)", "rest of a step (CPU s)", "vectors (MB)", "peak before the run (MB)",
    "peak (MB)",
)  # fmt: skip


@dataclass(frozen=True)
class SizeResult:
    """What an estimate of one model took."""

    dim: int  # number of parameters
    product_seconds: float  # CPU time of one product
    other_seconds: float  # CPU time of the rest of a step, mostly orthogonalisation
    vector_bytes: int  # size of all vectors of the run
    before_bytes: int  # peak memory of the process after the first product, before the run
    peak_bytes: int  # peak memory of the process in the end
    largest: float  # largest eigenvalue found


class Timed:
    """An operator that adds up the CPU time of its products."""

    def __init__(self, operator: HessianOperator) -> None:
        self.operator, self.seconds = operator, 0.0
        self.dim, self.dtype, self.device = operator.dim, operator.dtype, operator.device
        self.is_main_process = True

    def __call__(self, vector: Tensor) -> Tensor:
        """The product of the operator."""
        begun = time.process_time()
        product = self.operator(vector)
        self.seconds += time.process_time() - begun
        return product

    def fingerprint(self) -> str:
        """Fingerprint of the operator."""
        return self.operator.fingerprint()

    def min_over_processes(self, value: int) -> int:
        """The value itself: there is one process."""
        return value


def make() -> ResultsPage:
    """Measure all sizes."""
    sizes = [in_new_process(measure_size, size) for size in SIZES]
    last = sizes[-1]
    points = {
        "time of a product (CPU s)": [result.product_seconds for result in sizes],
        "rest of a step (CPU s)": [result.other_seconds for result in sizes],
    }
    memory = {
        "peak of the process (GB)": [result.peak_bytes / 1e9 for result in sizes],
        f"{NUM_VECTORS} vectors (GB)": [result.vector_bytes / 1e9 for result in sizes],
    }
    parts = [
        f"Transformers with random weights (seed {SEED}) and tied embeddings, float32, one row of {NUM_TOKENS} random"
        f" tokens, {NUM_STEPS} Lanczos steps with {NUM_VECTORS} vectors of the size of the model, one thread. Times are"
        " CPU times, because the machine had other work.",
        f"## The size of GPT-2 ({last.dim:,} parameters)",
        f"The estimate of {NUM_STEPS} steps stayed within {last.vector_bytes / 1e9:.2f} GB for its vectors, of"
        f" {GPT2_BUDGET / 1e9:g} GB allowed. A product took {last.product_seconds:.1f} s, the rest of a step"
        f" {last.other_seconds:.1f} s. The peak memory of the process was {last.peak_bytes / 1e9:.1f} GB, with the"
        f" model, its gradient graph and Python. The largest eigenvalue found is {last.largest:.3g}.",
        "## From 10,000 parameters to GPT-2",
        markdown_table(COLUMNS, [_row(result) for result in sizes]),
        "![Time of a product and of the rest of a step, and memory, against the number of parameters, on logarithmic"
        " axes](large.png)",
    ]
    figure = scaling_figure([result.dim for result in sizes], points, memory)
    return ResultsPage("large", "Large models", "\n\n".join(parts), figures={"large.png": figure})


def scaling_figure(
    dims: Sequence[int], times: Mapping[str, Sequence[float]], sizes: Mapping[str, Sequence[float]]
) -> Figure:
    """Draw times and sizes against the number of parameters, on logarithmic axes."""
    figure = Figure(figsize=(11, 4.2), layout="constrained")
    panels = zip(figure.subplots(1, 2), (times, sizes), ("CPU time (s)", "memory (GB)"), strict=True)
    for axes, curves, label in panels:
        for place, (name, values) in enumerate(curves.items()):
            axes.plot(dims, values, marker="o", markersize=4, label=name, **style(place))
        axes.set(xscale="log", yscale="log", xlabel="parameters", ylabel=label)
        axes.legend(frameon=False, fontsize="small")
        axes.grid(alpha=0.3)
    return figure


def measure_size(size: tuple[int, int, int, int] | None) -> SizeResult:
    """Run one estimate in this process."""
    torch.set_num_threads(1)
    with drawn_from(SEED):
        model = gpt2() if size is None else Transformer(*size, context=NUM_TOKENS, tied=True)
    num_tokens = model.embedding.num_embeddings
    text = torch.randint(0, num_tokens, (1, NUM_TOKENS + 1), generator=torch.Generator().manual_seed(SEED))
    operator = Timed(HessianOperator(model, next_byte_loss, (text[:, :-1], text[:, 1:]), check=False))
    operator(torch.randn(operator.dim, generator=torch.Generator().manual_seed(SEED)))  # builds the graph
    budget = GPT2_BUDGET if size is None else NUM_VECTORS * 4 * operator.dim
    before, operator.seconds, begun = peak_bytes(), 0.0, time.process_time()
    found = estimate_spectrum(operator, NUM_STEPS, settle=None, memory_budget=budget, progress=False)
    seconds = time.process_time() - begun
    return SizeResult(
        operator.dim, operator.seconds / NUM_STEPS, (seconds - operator.seconds) / NUM_STEPS, found.plan.num_bytes,
        before, peak_bytes(), float(found.nodes.max()),
    )  # fmt: skip


def _row(result: SizeResult) -> list[str]:
    sizes = (result.vector_bytes, result.before_bytes, result.peak_bytes)
    return [
        f"{result.dim:,}", f"{result.product_seconds:.3g}", f"{result.other_seconds:.2g}",
        *(f"{size / 1e6:,.3g}" if size < 1e9 else f"{size / 1e6:,.0f}" for size in sizes),
    ]  # fmt: skip


if __name__ == "__main__":
    make().write(Path("results"), made_by_line("python -m benchmarks.large"))
