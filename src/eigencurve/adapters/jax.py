"""hessian_operator, the Hessian of a JAX loss, and jax_schedule, from a loss to its schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Unpack

from eigencurve import _check
from eigencurve.schedules.eigencurve import Eigencurve
from eigencurve.schedules.units import Steps, whole_steps

try:
    import jax
    import jax.numpy as jnp
    from jax.flatten_util import ravel_pytree

    from eigencurve.hessian.estimate import SpectrumEstimate, run_estimate, schedule_of
    from eigencurve.hessian.matvec import DTYPES, MatvecOperator
    from eigencurve.hessian.settings import EstimateOptions, EstimateSettings
except ImportError as error:
    need = "JAX (for products) and PyTorch (for Lanczos)"
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
    r"""Operator of the Hessian of a JAX loss, averaged over all examples, for :func:`estimate_spectrum`.

    .. math:: Hv = \frac1N \sum_b n_b\, \partial_\epsilon \nabla\ell_b(w + \epsilon v), \qquad N = \sum_b n_b

    Batch b has :math:`n_b` examples. A product is a forward derivative of the gradient, compiled once per batch shape.
    Lanczos itself runs in PyTorch on the CPU, in the type of the parameters (float64 if JAX's x64 mode is enabled).

    Args:
        loss: ``loss(params, batch)``, the *mean* loss of a batch. If it uses random numbers, their key must be fixed.
        params: Any tree of arrays, all float32 or all float64.
        batches: One batch, such as a tuple of arrays (x, y) or a dict, or a list or other iterable of batches, which is
            read once. Batches of unequal size are weighted by their size.
        count: Function that returns the number of examples over which the loss of a batch is the mean; by default the
            leading dimension of the first array. Batches with a count of zero are skipped.
        fingerprint: Name that identifies this operator in checkpoints; by default a hash of one product.
        check: Whether to spend three products on checking that products are deterministic and symmetric.

    Raises:
        TypeError: If ``loss`` is not callable.
        ValueError: If there are no parameters or parameters of several types, if there are no examples, if the loss is
            not a scalar, or if products are not finite, deterministic and symmetric.

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
    examples = [(size, batch) for size, batch in sized if size]  # the mean over no examples is not defined
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
    *,
    lr: float,
    weight_decay: float,
    min_lr: float | None = None,
    beta: float = 2.0,
    **options: Unpack[EstimateOptions],
) -> tuple[Eigencurve, SpectrumEstimate]:
    """Measure the spectrum of a JAX loss and return its Eigencurve schedule.

    Args:
        loss: ``loss(params, batch)``, the mean loss of a batch, without the weight decay.
        params: Trained or nearly trained parameters; spectra change early in training.
        batches: Arrays (x, y) or a list of such pairs. A few hundred examples are enough.
        total_steps: Number of updates T of the run that the schedule is for.
        lr: Initial learning rate of that run.
        weight_decay: Weight decay of its optimizer, positive.
        min_lr: Learning rate of the last step. By default, the curve is not rescaled.
        beta: Ratio of the groups' edges; see :func:`eigencurve.eigencurve`.
        **options: Options of :func:`eigencurve.hessian.estimate_spectrum`: ``num_steps``, ``num_probes``, ``seed``,
            ``settle``, ``memory_budget``, ``checkpoint`` and ``progress``.

    Returns:
        The schedule, ready for :func:`eigencurve.adapters.optax.optax_schedule`, and the estimate behind it.
    """
    total = whole_steps("jax_schedule", "total_steps", total_steps, minimum=1)
    settings = EstimateSettings(weight_decay=weight_decay, total_steps=total, **options)
    estimate = run_estimate(hessian_operator(loss, params, batches), settings)
    return schedule_of(estimate, lr, min_lr, beta), estimate


def _dtype_of(params: Any) -> str:
    kinds = sorted({str(jnp.result_type(leaf)) for leaf in jax.tree.leaves(params)})
    if len(kinds) != 1 or kinds[0] not in DTYPES:
        remedy = "Leave out counters and the like, and cast the rest to one type."
        _check.refuse("hessian_operator", "params", "arrays all of type float32 or all of float64", kinds, remedy)
    return kinds[0]


def _batches(batches: Any) -> list[Any]:
    """The batches in a list; an array, a tuple or a mapping is a single batch."""
    several = isinstance(batches, Iterable) and not (isinstance(batches, tuple | Mapping) or hasattr(batches, "shape"))
    return [jax.tree.map(jnp.asarray, batch) for batch in (batches if several else [batches])]


def _size(batch: Any, count: Callable[[Any], int] | None) -> int:
    if count is not None:
        return _check.whole("hessian_operator", "count", count(batch), minimum=0)
    sizes = [leaf.shape[0] for leaf in jax.tree.leaves(batch) if leaf.ndim]
    if not sizes:
        remedy = "Pass 'count', a function that returns the number of examples in a batch."
        _check.refuse("hessian_operator", "batches", "made of arrays with a leading dimension", batch, remedy)
    return int(sizes[0])


def _require_scalar(loss: Callable[[Any, Any], jax.Array], params: Any, batch: Any) -> None:
    found = jax.eval_shape(loss, params, batch)
    if getattr(found, "shape", None) != ():
        _check.refuse("hessian_operator", "loss", "a scalar: the mean over the batch", found, "Use jnp.mean.")
