"""The curvature of a JAX loss: products for the same Lanczos, and the one call from a loss to its schedule."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from eigencurve import _check
from eigencurve.schedules.eigencurve import Eigencurve, eigencurve
from eigencurve.schedules.units import Steps, whole_steps
from eigencurve.spectrum.spectrum import prepare

try:
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    from eigencurve.hessian.estimate import SpectrumEstimate, estimate_spectrum
    from eigencurve.hessian.matvec import DTYPES, MatvecOperator
except ImportError as error:
    need = "JAX for its products and PyTorch for Lanczos"
    raise ImportError(f"eigencurve.adapters.jax needs {need}: pip install eigencurve[jax]") from error


def hessian_operator(
    loss: Callable[[Any, Any], jax.Array],
    params: Any,
    batches: Any,
    *,
    count: Callable[[Any], int] | None = None,
    fingerprint: str | None = None,
    check: bool = True,
) -> MatvecOperator:
    r"""Products with the Hessian of the mean of ``loss`` over all examples, for :func:`estimate_spectrum`.

    .. math:: Hv = \frac1N \sum_b n_b\, \partial_\epsilon \nabla\ell_b(w + \epsilon v), \qquad N = \sum_b n_b

    with :math:`n_b` examples in batch b: a forward derivative of the gradient, compiled once for every shape of batch.
    Lanczos itself runs on the host in PyTorch, with the type of the parameters: float64 where JAX's x64 is on.

    Args:
        loss: ``loss(params, batch)``, the *mean* over the batch; whatever is random in it must have a fixed key.
        params: any tree of arrays, all float32 or all float64.
        batches: one batch, such as a tuple of arrays (x, y) or a dict; or a list or other iterable of them, which is
            read once. Ragged ones are weighted by their sizes.
        count: over how many examples the loss of a batch is the mean, where that is not the first array's leading
            dimension. A batch of none is left out.
        fingerprint: a name by which checkpoints know this problem; None hashes a product.
        check: whether to spend three products on seeing that they are deterministic and symmetric.

    Raises:
        TypeError: a loss that is not callable.
        ValueError: parameters of several types or none, no examples, a loss that is not a scalar, or products that
            are not finite, deterministic and symmetric.

    Reference: Pearlmutter, Fast exact multiplication by the Hessian, Neural Computation 6 (1994).

    >>> import torch
    >>> x = jnp.array([[1.0, 0.0], [0.0, 2.0]])
    >>> operator = hessian_operator(lambda w, x: jnp.mean((x @ w) ** 2), jnp.zeros(2), x)
    >>> operator(torch.tensor([1.0, 1.0]))
    tensor([1., 4.])
    """
    if not callable(loss):
        raise TypeError(_check.sentence("hessian_operator", "loss", "callable as loss(params, batch)", loss))
    dtype = _dtype_of(params)
    point, unravel = ravel_pytree(params)
    sized = [(_size(batch, count), batch) for batch in _batches(batches)]
    examples = [(size, batch) for size, batch in sized if size]  # of none there is no mean
    total = sum(size for size, _ in examples)
    if total == 0:
        _check.refuse("hessian_operator", "batches", "at least one example", "none")
    _require_scalar(loss, params, examples[0][1])

    @jax.jit
    def add_product(so_far: jax.Array, share: float, w: jax.Array, v: jax.Array, batch: Any) -> jax.Array:
        gradient = jax.grad(lambda flat: loss(unravel(flat), batch))
        product: jax.Array = jax.jvp(gradient, (w,), (v,))[1]
        return so_far + share * product

    def matvec(vector: Any) -> jax.Array:
        product = jnp.zeros_like(point)
        for size, batch in examples:
            product = add_product(product, size / total, point, vector, batch)
        return product

    return MatvecOperator(matvec, point.size, dtype=dtype, fingerprint=fingerprint, check=check)


def jax_schedule(
    loss: Callable[[Any, Any], jax.Array],
    params: Any,
    batches: Any,
    total_steps: Steps,
    lr: float,
    weight_decay: float,
    min_lr: float | None = None,
    beta: float = 2.0,
    num_steps: int = 250,
    num_probes: int = 1,
    seed: int = 0,
    settle: float | None = 0.02,
    memory_budget: int | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> tuple[Eigencurve, SpectrumEstimate]:
    """From a JAX loss to its schedule in one call: measure the spectrum, prepare it, make the curve.

    Args:
        loss: ``loss(params, batch)``, the mean over the batch, without the weight decay.
        params: near the end of a training run; early spectra differ.
        batches: arrays (x, y), or a list of such pairs; a few hundred examples do.
        total_steps: T of the run that the schedule is for, counted in updates.
        lr: its initial rate.
        weight_decay: of its optimizer, above 0.
        min_lr: of its last step; None leaves the curve alone.
        beta: of the schedule; see :func:`eigencurve.eigencurve`.
        num_steps: of Lanczos, at most; this and the following as in :func:`eigencurve.hessian.estimate_spectrum`.
        num_probes: how many random directions to average.
        seed: of the probes.
        settle: by how little the schedule must have moved for the estimate to stop.
        memory_budget: bytes for all vectors.
        checkpoint: a file to save to and go on from.
        progress: whether to show a bar on a terminal.

    Returns:
        The schedule, for :func:`eigencurve.adapters.optax.optax_schedule`, and the estimate that it was made from.
    """
    total = whole_steps("jax_schedule", "total_steps", total_steps, minimum=1)
    operator = hessian_operator(loss, params, batches)
    estimate = estimate_spectrum(
        operator, num_steps, num_probes, seed, settle, weight_decay, total, memory_budget, checkpoint, progress
    )
    return eigencurve(prepare(estimate.spectrum, weight_decay), total, lr, min_lr, beta), estimate


def _dtype_of(params: Any) -> str:
    kinds = sorted({str(jnp.result_type(leaf)) for leaf in jax.tree.leaves(params)})
    if len(kinds) != 1 or kinds[0] not in DTYPES:
        remedy = "Leave counters and the like out, and cast the others."
        _check.refuse("hessian_operator", "params", "arrays all of type float32 or all of float64", kinds, remedy)
    return kinds[0]


def _batches(batches: Any) -> list[Any]:
    """A list, or anything else that is iterable and not an array, a tuple or a mapping, holds several."""
    several = isinstance(batches, Iterable) and not (isinstance(batches, tuple | Mapping) or hasattr(batches, "shape"))
    return [jax.tree.map(jnp.asarray, batch) for batch in (batches if several else [batches])]


def _size(batch: Any, count: Callable[[Any], int] | None) -> int:
    if count is not None:
        return _check.whole("hessian_operator", "count", count(batch), minimum=0)
    sizes = [leaf.shape[0] for leaf in jax.tree.leaves(batch) if leaf.ndim]
    if not sizes:
        remedy = "Give the number of examples in a batch by 'count'."
        _check.refuse("hessian_operator", "batches", "made of arrays with a leading dimension", batch, remedy)
    return int(sizes[0])


def _require_scalar(loss: Callable[[Any, Any], jax.Array], params: Any, batch: Any) -> None:
    found = jax.eval_shape(loss, params, batch)
    if getattr(found, "shape", None) != ():
        _check.refuse("hessian_operator", "loss", "a scalar: the mean over the batch", found, "Use jnp.mean.")
