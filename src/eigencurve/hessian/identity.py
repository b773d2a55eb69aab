"""The identity of a Lanczos run in its checkpoint: hashes of its inputs, and numbers of its products.

A loss function, the buffers of a model, and its code have no hash. So a checkpoint also holds the value of the loss,
and a few numbers of its gradient and of the product with a fixed vector.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from eigencurve._arrays import Array
from eigencurve.hessian.lanczos import TOLERANCE, LanczosOperator
from eigencurve.hessian.space import Space, space_of
from eigencurve.hessian.verify import SEED, probe_vectors

# Random projections of a vector that a checkpoint holds, and the seed of their directions.
NUM_PROJECTIONS = 4
PROJECTION_SEED = SEED + 2
# Roundings of a loss of size one: log-softmax rounds to multiples of one, however small the loss is.
LOSS_ROUNDINGS = 16
SAME_PARTS = (
    "The parameters, the data and the settings are the same, so the loss function, a buffer or the code of the model "
    "has changed. "
)


@dataclass(frozen=True, eq=False)
class Identity:
    """Properties of a run that must be the same to resume it.

    Attributes:
        seed: Seed of the start vectors.
        function: Name of the function that made the run.
        parts: Hashes of the settings, the parameters, the data and so on, by these names.
        numbers: Product with a fixed vector, gradient, loss and start vector, as far as the operator has them, by these
            names. Each is a length followed by projections; the loss is followed by zeros.
        allowed: Largest difference of each of ``numbers`` that rounding explains.
        fingerprint: Function that returns the hash that checkpoints of earlier releases hold.
    """

    seed: int
    function: str
    parts: Mapping[str, str]
    numbers: Mapping[str, Array]
    allowed: Mapping[str, float]
    fingerprint: Callable[[], str]

    def fields(self) -> dict[str, Any]:
        """The identity as arrays for a file."""
        return {
            "seed": np.int64(self.seed), "function": np.str_(self.function),
            "part_names": np.array([*self.parts], dtype=np.str_),
            "part_hashes": np.array([*self.parts.values()], dtype=np.str_),
            "number_names": np.array([*self.numbers], dtype=np.str_), "numbers": np.array([*self.numbers.values()]),
        }  # fmt: skip

    def difference(self, fields: Mapping[str, Any], is_old: bool) -> tuple[str, str, str] | None:
        """The constraint that the run in a file violates, its value, and a likely cause; None if it is the same run.

        Raises:
            LookupError, TypeError, ValueError: A field is missing or of another kind.
        """
        function = str(fields.get("function", "estimate_spectrum"))  # files of version 0.1 have no function
        if function != self.function:
            return f"of {self.function}", f"a checkpoint of {function}", ""
        if (seed := int(fields["seed"])) != self.seed:
            return f"of seed {self.seed}", f"a checkpoint of seed {seed}", ""
        if is_old:
            if str(fields["fingerprint"]) == self.fingerprint():
                return None
            return "of this model, these parameters and this data", "a checkpoint of another problem", ""
        parts = dict(zip(fields["part_names"].tolist(), fields["part_hashes"].tolist(), strict=True))
        numbers = dict(zip(fields["number_names"].tolist(), fields["numbers"], strict=True))
        changed_parts = [name for name in {**parts, **self.parts} if parts.get(name) != self.parts.get(name)]
        changed_numbers = [name for name in {**numbers, **self.numbers} if not self._agrees(name, numbers)]
        changed = ", ".join((*changed_parts, *changed_numbers))
        got = f"a checkpoint of another problem: different {changed}"
        return ("of this problem", got, "" if changed_parts else SAME_PARTS) if changed else None

    def _agrees(self, name: str, numbers: Mapping[str, Array]) -> bool:
        if name not in numbers or name not in self.numbers:
            return False
        return bool(np.abs(numbers[name] - self.numbers[name]).max() <= self.allowed[name])


def identity_of(
    operator: LanczosOperator,
    function: str,
    seed: int,
    start: Tensor | None = None,
    mark: str = "",
    examples: LanczosOperator | None = None,
) -> Identity:
    r"""The identity of a run on ``operator``; it takes one product, one gradient and one value of the loss.

    A vector p is stored as its length and the projections :math:`r_k^\top p` on four random directions. If p changes
    by δ, each projection changes by a normal number of standard deviation :math:`\|\delta\|`. A relative change ε
    above the tolerance τ is overlooked with a probability of about (0.8 τ/ε)⁴: 4e-5 for ε = 10 τ. A change below τ,
    such as that of one eigenvalue of many, is not noticed.

    The tolerance covers rounding on other processors and with other numbers of threads, and the measured error of
    finite differences.

    Args:
        operator: Operator of the run.
        function: Name of the function that the user called.
        seed: Seed of the start vectors.
        start: First start vector, if it is not a random one.
        mark: Text that identifies the start vectors, in addition to the operator and the seed.
        examples: Another operator that the start vectors are made from.
    """
    product_error = next((e for o in _wrapped(operator) if (e := getattr(o, "product_error", None)) is not None), 0.0)
    space, tolerance = space_of(operator), TOLERANCE[operator.dtype] + 3 * float(product_error)
    vectors = {"product": operator(probe_vectors(operator)[1])}
    source = next((o for o in _wrapped(operator) if hasattr(o, "mean_loss") and hasattr(o, "gradient")), None)
    if source is not None:
        vectors["gradient"] = source.gradient()
    if start is not None:
        vectors["start vector"] = start
    numbers = dict(zip(vectors, _measured(space, [*vectors.values()]), strict=True))
    if source is not None:
        numbers["loss"] = np.array([source.mean_loss(), *[0.0] * NUM_PROJECTIONS])
    allowed = _allowed({name: abs(row[0]) for name, row in numbers.items()}, tolerance, operator.dtype)
    parts = {**parts_of(operator), **({"start vectors": mark} if mark else {})}
    if examples is not None:
        parts |= {f"{name} of 'examples'": part for name, part in parts_of(examples).items()}

    def fingerprint() -> str:
        return f"{operator.fingerprint()}{'' if examples is None else examples.fingerprint()}{mark}"

    return Identity(seed, function, parts, numbers, allowed, fingerprint)


def parts_of(operator: Any) -> dict[str, str]:
    """Hashes of the parts of an operator by name; its whole fingerprint if it has no ``identity_parts``."""
    own = getattr(operator, "identity_parts", None)
    return {"fingerprint": operator.fingerprint()} if own is None else dict(own())


def joined_hashes(parts: Sequence[Any]) -> dict[str, str]:
    """One hash for each name, from the ``identity_parts`` of all processes in the order of their ranks."""
    texts = {name: " ".join(part[name] for part in parts) for name in parts[0]}
    return {name: hashlib.sha256(text.encode()).hexdigest() for name, text in texts.items()}


def _wrapped(operator: Any) -> Iterator[Any]:
    """``operator``, the operator that it wraps, and so on."""
    while operator is not None:
        yield operator
        operator = getattr(operator, "operator", None)


def _measured(space: Space, vectors: list[Tensor]) -> Array:
    """A row for each vector: its length and its projections."""
    generator, first = torch.Generator().manual_seed(PROJECTION_SEED), vectors[0]
    columns = [[space.norm(vector) for vector in vectors]]
    for _ in range(NUM_PROJECTIONS):
        direction = space.normal(generator, first.dtype).to(first.device)
        columns.append([space.dot(direction, vector) for vector in vectors])
    return np.array(columns).T


def _allowed(sizes: dict[str, float], tolerance: float, dtype: torch.dtype) -> dict[str, float]:
    r"""Largest difference of each number that rounding explains.

    Near a minimum the gradient is a small sum of large terms, so its error follows the terms. For a nearly quadratic
    loss ℓ, they have the size :math:`\sqrt{2 \ell \lambda}` with λ at most the length of the product.
    """
    allowed = {name: tolerance * size for name, size in sizes.items()}
    if "loss" in sizes:
        allowed["loss"] += LOSS_ROUNDINGS * float(torch.finfo(dtype).eps)
        allowed["gradient"] += tolerance * math.sqrt(2 * sizes["loss"] * sizes["product"])
    return allowed
