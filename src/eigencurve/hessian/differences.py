"""The step of finite differences: as small as rounding allows, with a measured error."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from eigencurve.hessian.space import Space

# Products that turn a random vector towards the sharp directions.
SHARPENING = 3
MAX_RUNGS = 10


def first_step(dtype: torch.dtype) -> float:
    """The relative step to start from: small, because the loss is far from quadratic along sharp directions.

    The cube root of the rounding error balances it with the truncation error of a central difference, up to a factor
    that depends on the loss. 1/64 is about the best factor on the transformers of the tests.
    """
    return float(torch.finfo(dtype).eps ** (1 / 3)) / 64


def central_difference(function: Callable[[float], Tensor], h: float) -> Tensor:
    """Derivative of a function at zero, by its values at ±h."""
    return (function(h) - function(-h)) / (2 * h)


def choose_step(
    product: Callable[[Tensor, float], Tensor], space: Space, vector: Tensor, step: float
) -> tuple[float, float]:
    r"""Choose the relative step of a central difference, and measure the error of the products.

    With a step h, the relative error of a product is the rounding part r/h plus the truncation part t h². Rounding is
    worst for a random vector, which the matrix hardly amplifies; truncation is worst along the sharp directions, which
    an early Lanczos vector turns to. Both errors are measured by comparing the products of h and 2h. From ``step``, h
    moves by factors of two as long as the larger of the two errors falls.

    Args:
        product: Function (v, h) -> Hv.
        space: The vectors.
        vector: A random vector.
        step: Step to start from.

    Returns:
        The step, and the larger of the two relative errors. A truncation error is overestimated by a factor of three;
        a rounding error fluctuates from vector to vector.
    """
    vectors = (vector, _sharp(product, space, vector, step))
    products: dict[float, list[Tensor]] = {}

    def errors(h: float) -> list[float]:
        for other in products.keys() - {h, 2 * h}:
            del products[other]
        for length in {h, 2 * h} - products.keys():
            products[length] = [product(each, length) for each in vectors]
        return [relative_size(space, a - b, a) for a, b in zip(products[h], products[2 * h], strict=True)]

    rounding, truncation = errors(step)
    best, factor = max(rounding, truncation), 2.0 if rounding > truncation else 0.5
    for _ in range(MAX_RUNGS):
        error = max(errors(step * factor))
        if not error < best:
            break
        step, best = step * factor, error
    return step, best


def relative_size(space: Space, difference: Tensor, reference: Tensor) -> float:
    """Norm of ``difference`` divided by the norm of ``reference``, unless that is zero."""
    size = space.norm(reference)
    return space.norm(difference) / size if size > 0 else space.norm(difference)


def _sharp(product: Callable[[Tensor, float], Tensor], space: Space, vector: Tensor, step: float) -> Tensor:
    """``vector`` after a few steps of the power method."""
    for _ in range(SHARPENING):
        following = product(vector, step)
        size = space.norm(following)
        if not size > 0:
            break
        vector = following / size
    return vector
