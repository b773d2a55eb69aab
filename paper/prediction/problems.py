"""The problems on which predictions are compared with real runs: three with a known minimum, and a small network."""

from __future__ import annotations

import copy
import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional as F
from torch.nn.utils import parameters_to_vector, vector_to_parameters

from eigencurve import cosine
from eigencurve.hessian import HessianOperator
from paper.data.rows import SparseRows
from paper.files import write_atomically
from paper.models.making import drawn_from
from paper.models.resnet import cifar_batch, trained_resnet20
from paper.ridge.experiment import RidgeProblem

Loss = Callable[[Tensor, Tensor], Tensor]
# Starts at these fractions of the way from the minimum to zero weights.
DISTANCES = (1.0, 0.5, 0.25, 0.1)
LOGISTIC_DECAY, LAST_LAYER_DECAY, NETWORK_DECAY = 1e-3, 5e-4, 5e-4
LOGISTIC_BATCH, LAST_LAYER_BATCH, NETWORK_BATCH = 8, 32, 32
NUM_CLASSES = 10
FEATURES_AT_ONCE = 500
# A gradient this small is at the minimum up to rounding: its excess loss is below its square over twice the decay.
SMALLEST_GRADIENT = 1e-6
# Images are averaged over squares of this many pixels, so 3 × 8 × 8 inputs are left.
POOLED = 4
HIDDEN = (96, 32)
# The earlier run: a cosine from this rate. Its points, as fractions of its steps, are starts of the runs.
EARLIER_RATE = 0.3
POINTS = (0.0, 0.1, 0.5, 1.0)


@dataclass(frozen=True, eq=False)
class Problem:
    r"""Training of a model by SGD on independently drawn examples.

    .. math:: f(w) = \frac1n\sum_i \ell_i(w) + \tfrac12\,\text{weight decay}\,\|w\|^2
    """

    name: str  # name in the store and in file names
    title: str  # name on the page
    model: nn.Module  # model; its own weights are not used
    loss_fn: Loss  # mean loss of a batch, without weight decay
    inputs: Tensor  # inputs of all examples
    labels: Tensor  # labels of all examples
    weight_decay: float  # weight decay
    batch_size: int  # number of examples per step
    end: Tensor  # flat weights of the minimum, or of the end of an earlier run
    starts: Mapping[str, Tensor]  # flat weights that runs start from, by name; the first is the usual start
    is_minimum: bool = True  # whether `end` is a minimum
    # The same problem for the compiled SGD of ridge regression, if it is one.
    ridge: RidgeProblem | None = field(default=None, repr=False)

    @property
    def dim(self) -> int:
        """Number of parameters d."""
        return self.end.numel()

    @property
    def first(self) -> str:
        """Name of the usual start."""
        return next(iter(self.starts))

    @cached_property
    def end_loss(self) -> float:
        """The loss f at ``end``."""
        return self.loss(self.end)

    def batch_loss(self, weights: Tensor, inputs: Tensor, labels: Tensor) -> Tensor:
        """Mean loss of a batch at flat weights, without weight decay."""
        named = dict(self.model.named_parameters())
        parts = torch.split(weights, [parameter.numel() for parameter in named.values()])
        values = {n: part.view_as(p) for (n, p), part in zip(named.items(), parts, strict=True)}
        return self.loss_fn(functional_call(self.model, values, (inputs,)), labels)

    def objective(self, weights: Tensor) -> Tensor:
        """The loss f at flat weights."""
        return self.batch_loss(weights, self.inputs, self.labels) + 0.5 * self.weight_decay * weights @ weights

    def loss(self, weights: Tensor) -> float:
        """The loss f at flat weights, as a number."""
        with torch.no_grad():
            return float(self.objective(weights))

    def excess(self, weights: Tensor) -> float:
        """The loss f at flat weights, minus that at ``end``."""
        return self.loss(weights) - self.end_loss

    def operator_at(self, weights: Tensor) -> HessianOperator:
        """The Hessian of the mean loss, without weight decay, at flat weights."""
        model = copy.deepcopy(self.model)
        vector_to_parameters(weights.detach().clone(), model.parameters())
        return HessianOperator(model, self.loss_fn, (self.inputs, self.labels))

    @cached_property
    def digest(self) -> str:
        """A hash of everything that runs depend on."""
        digest = hashlib.sha256(f"{self.name} {self.weight_decay!r} {self.batch_size}".encode())
        for tensor in (self.inputs, self.labels, self.end, *self.starts.values()):
            digest.update(tensor.detach().contiguous().numpy().tobytes())
        return digest.hexdigest()[:12]


def flat_weights(model: nn.Module) -> Tensor:
    """The parameters of a model as one flat vector."""
    return parameters_to_vector(model.parameters()).detach()


def squared_loss(outputs: Tensor, labels: Tensor) -> Tensor:
    """Mean squared error of a model with one output."""
    return F.mse_loss(outputs[..., 0], labels)


def logistic_loss(outputs: Tensor, labels: Tensor) -> Tensor:
    """Mean logistic loss of a model with one output, for labels 0 and 1."""
    return F.binary_cross_entropy_with_logits(outputs[..., 0], labels)


def ridge(rows: SparseRows, data_name: str) -> Problem:
    """Ridge regression from zero weights, with one row per step: the problem of the paper."""
    problem = RidgeProblem(rows)
    return Problem(
        name="ridge", title=f"ridge regression on {data_name}",
        model=_linear(rows.num_columns, 1, bias=False), loss_fn=squared_loss,
        inputs=torch.from_numpy(rows.dense()), labels=torch.from_numpy(rows.labels.copy()),
        # The L2 term α‖w‖² has the gradient 2αw.
        weight_decay=2 * problem.alpha, batch_size=1,
        end=torch.from_numpy(problem.optimum), starts={"zero": torch.zeros(rows.num_columns, dtype=torch.float64)},
        ridge=problem,
    )  # fmt: skip


def logistic(rows: SparseRows, data_name: str, distances: Sequence[float] = DISTANCES) -> Problem:
    """Logistic regression with weight decay, from zero weights and from points between them and the minimum."""
    problem = Problem(
        name="logistic", title=f"logistic regression on {data_name}",
        model=_linear(rows.num_columns, 1, bias=False), loss_fn=logistic_loss,
        inputs=torch.from_numpy(rows.dense()), labels=torch.from_numpy((rows.labels > 0).astype(np.float64)),
        weight_decay=LOGISTIC_DECAY, batch_size=LOGISTIC_BATCH,
        end=torch.zeros(rows.num_columns, dtype=torch.float64), starts={},
    )  # fmt: skip
    return with_minimum(problem, distances)


def last_layer(data: Path | None, num_images: int | None = None, distances: Sequence[float] = DISTANCES) -> Problem:
    """Softmax regression on the features of a trained ResNet-20, with weight decay.

    Raises:
        FileNotFoundError: The weights or the images are missing.
    """
    features, labels = resnet20_features(data, num_images)
    model = _linear(features.shape[1], NUM_CLASSES)
    problem = Problem(
        name="last-layer", title="last layer of a trained ResNet-20", model=model, loss_fn=F.cross_entropy,
        inputs=features, labels=labels, weight_decay=LAST_LAYER_DECAY, batch_size=LAST_LAYER_BATCH,
        end=torch.zeros(sum(p.numel() for p in model.parameters()), dtype=torch.float64), starts={},
    )  # fmt: skip
    return with_minimum(problem, distances)


def resnet20_features(data: Path | None, num_images: int | None = None) -> tuple[Tensor, Tensor]:
    """The inputs of the last layer of the trained ResNet-20 on the training images, and their labels."""
    model = trained_resnet20(data).eval()
    model.add_module("fc", nn.Identity())
    images, labels = cifar_batch(data, num_images)
    with torch.no_grad():
        parts = [model(part) for part in torch.split(images, FEATURES_AT_ONCE)]
    return torch.cat(parts).double(), labels


def with_minimum(problem: Problem, distances: Sequence[float]) -> Problem:
    """The problem with its minimum, found by L-BFGS from ``end``, and starts between the minimum and zero weights.

    Raises:
        ArithmeticError: L-BFGS did not converge.
    """
    weights = problem.end.clone().requires_grad_()
    optimizer = torch.optim.LBFGS(
        [weights], max_iter=2000, history_size=50, line_search_fn="strong_wolfe", tolerance_grad=1e-10,
        tolerance_change=0.0,
    )  # fmt: skip

    def closure() -> Tensor:
        optimizer.zero_grad()
        loss = problem.objective(weights)
        loss.backward()  # type: ignore[no-untyped-call]
        return loss

    optimizer.step(closure)  # type: ignore[no-untyped-call]
    (gradient,) = torch.autograd.grad(problem.objective(weights), weights)
    if not float(gradient.abs().max()) < SMALLEST_GRADIENT:
        raise ArithmeticError(f"{problem.name}: L-BFGS stopped at a gradient of {float(gradient.abs().max()):.1e}.")
    minimum = weights.detach()
    return replace(problem, end=minimum, starts={distance_name(s): (1 - s) * minimum for s in distances})


def distance_name(distance: float) -> str:
    """Name of a start at a fraction of the way from the minimum to zero weights.

    >>> distance_name(1.0), distance_name(0.25)
    ('zero', '25 % away')
    """
    return "zero" if distance == 1 else f"{100 * distance:g} % away"


def _linear(num_inputs: int, num_outputs: int, bias: bool = True) -> nn.Module:
    with drawn_from(0):
        return nn.Linear(num_inputs, num_outputs, bias=bias, dtype=torch.float64)


@dataclass(frozen=True)
class NetworkSize:
    """Size of the network problem."""

    num_images: int | None = None  # number of training images; None uses all
    hidden: Sequence[int] = HIDDEN  # widths of the hidden layers
    earlier_steps: int = 2000  # number of steps of the earlier run


def network(data: Path | None, size: NetworkSize, folder: Path) -> Problem:
    """A perceptron with two hidden layers on small CIFAR-10 images, trained from scratch.

    Runs start from the initial weights and from points of an earlier run, whose end stands for the minimum. The points
    are kept in ``folder``.

    Raises:
        FileNotFoundError: The images are missing.
    """
    inputs, labels = small_images(data, size.num_images)
    model = perceptron(inputs.shape[1], size.hidden)
    initial = flat_weights(model)
    problem = Problem(
        name="network", title=f"network of {initial.numel():,} parameters from scratch", model=model,
        loss_fn=F.cross_entropy, inputs=inputs, labels=labels, weight_decay=NETWORK_DECAY, batch_size=NETWORK_BATCH,
        end=initial, starts={"start": initial}, is_minimum=False,
    )  # fmt: skip
    points = _kept(problem, size.earlier_steps, folder)
    return replace(problem, end=points[-1], starts=dict(zip(map(point_name, POINTS), points, strict=True)))


def small_images(data: Path | None, num_images: int | None = None) -> tuple[Tensor, Tensor]:
    """The training images at a quarter of their resolution, as flat vectors, and their labels."""
    images, labels = cifar_batch(data, num_images)
    return F.avg_pool2d(images, POOLED).flatten(1), labels


def perceptron(num_inputs: int, hidden: Sequence[int] = HIDDEN) -> nn.Sequential:
    """Linear layers with ReLUs between them.

    >>> sum(p.numel() for p in perceptron(192).parameters())
    21962
    """
    widths = (num_inputs, *hidden)
    layers: list[nn.Module] = []
    with drawn_from(0):
        for before, after in pairwise(widths):
            layers += [nn.Linear(before, after), nn.ReLU()]
        return nn.Sequential(*layers, nn.Linear(widths[-1], NUM_CLASSES))


def earlier_run(problem: Problem, total_steps: int) -> list[Tensor]:
    """Train from the first start with a cosine; the weights at each fraction in ``POINTS`` of the steps."""
    schedule, source = cosine(total_steps, EARLIER_RATE), np.random.default_rng(0)
    marks = [round(point * total_steps) for point in POINTS]
    weights = problem.starts[problem.first].clone()
    points = []
    for step in range(total_steps + 1):
        points += [weights.clone()] * marks.count(step)
        examples = torch.from_numpy(source.integers(0, len(problem.labels), problem.batch_size))
        leaf = weights.clone().requires_grad_()
        loss = problem.batch_loss(leaf, problem.inputs[examples], problem.labels[examples])
        (slope,) = torch.autograd.grad(loss, leaf)
        weights -= schedule(min(step, total_steps - 1)) * (slope + problem.weight_decay * weights)
    return points


def point_name(point: float) -> str:
    """Name of a point of the earlier run.

    >>> [point_name(point) for point in (0.0, 0.1, 1.0)]
    ['start', 'after 10 %', 'end']
    """
    return {0.0: "start", 1.0: "end"}.get(point, f"after {100 * point:g} %")


def _kept(problem: Problem, total_steps: int, folder: Path) -> list[Tensor]:
    """The points of the earlier run, from a file if it has been run."""
    path = folder / f"prediction-earlier-{problem.digest}-{total_steps}.npz"
    if path.exists():
        with np.load(path, allow_pickle=False) as archive:
            return [torch.from_numpy(row) for row in archive["points"]]
    points = earlier_run(problem, total_steps)
    buffer = io.BytesIO()
    np.savez(buffer, points=torch.stack(points).numpy())
    write_atomically(path, buffer.getvalue())
    return points
