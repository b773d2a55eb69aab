"""hessian_operator, the Hessian of a JAX loss, preconditioned_by for optax, and jax_schedule."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from eigencurve import _check
from eigencurve._moved import renamed
from eigencurve.schedules.eigencurve import Eigencurve
from eigencurve.schedules.units import Steps, whole_steps

try:
    import jax
    import jax.numpy as jnp
    import numpy as np
    import torch
    from jax.flatten_util import ravel_pytree

    from eigencurve.hessian.estimate import SpectrumEstimate, run_estimate, schedule_of, warn_if_unsettled
    from eigencurve.hessian.matvec import DTYPES, MatvecOperator
    from eigencurve.hessian.preconditioned import PreconditionedOperator
    from eigencurve.hessian.settings import EstimateSettings
except ImportError as error:
    need = "JAX (for products) and PyTorch (for Lanczos)"
    raise ImportError(f"eigencurve.adapters.jax needs {need}: pip install eigencurve[jax]") from error

# States of optax that hold a second moment of the gradient. Optax does not export all of them, so go by their names.
RMS_STATES = ("ScaleByRmsState", "ScaleByRmsWithCountState")
SECOND_MOMENT_STATES = ("ScaleByAdamState", *RMS_STATES)


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
        _check.wrong_type("hessian_operator", "loss", "callable as loss(params, batch)", loss)
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


def preconditioned_by(
    operator: MatvecOperator,
    state: Any,
    *,
    eps: float,
    b2: float | None = None,
    eps_root: float = 0.0,
    eps_in_sqrt: bool = True,
    weight_decay: float = 0.0,
    decoupled_weight_decay: bool = False,
) -> PreconditionedOperator:
    r"""Return a Hessian operator in the metric of Adam or RMSprop, P^(-1/2) H P^(-1/2), from a state of optax.

    .. math:: P = \operatorname{diag}\bigl(\sqrt{\hat\nu + \epsilon_\text{root}} + \epsilon\bigr), \qquad
              \hat\nu = \nu / (1 - b_2^{\,\text{count}})

    The state may be nested in those of ``optax.chain``, ``optax.inject_hyperparams`` and the like. It does not contain
    the optimizer's settings, so pass those that you passed to optax.

    Args:
        operator: Result of :func:`hessian_operator` for the parameters that the optimizer trains.
        state: State of ``optax.adam``, ``optax.adamw``, ``optax.rmsprop``, or of ``scale_by_adam`` or ``scale_by_rms``,
            after at least one update.
        eps: The optimizer's ``eps``.
        b2: The optimizer's ``b2``, or ``decay`` for RMSprop. Required for Adam and for RMSprop with bias correction.
        eps_root: The optimizer's ``eps_root``.
        eps_in_sqrt: The optimizer's ``eps_in_sqrt``, only for RMSprop: by default P is :math:`\sqrt{\nu + \epsilon}`.
        weight_decay: Weight decay of the optimizer.
        decoupled_weight_decay: Whether the decay is decoupled, as in ``optax.adamw``. Pass False if
            ``optax.add_decayed_weights`` comes before the scaling by Adam. :class:`PreconditionedOperator` explains
            the difference.

    Raises:
        ValueError: If there is not exactly one such state, if it belongs to other parameters or to no update yet, or if
            a setting is missing or invalid.
    """
    name = "preconditioned_by"
    moment = _second_moment(state)
    nu = np.array(ravel_pytree(moment.nu)[0], dtype=np.float64)
    if nu.size != operator.dim:
        need = (f"of {operator.dim} parameters, those of ", _check.Arg("operator"))
        _check.refuse(name, "state", need, f"{nu.size}")
    if not nu.any():
        _check.refuse(name, "state", "one after at least one update", "a second moment of zero")
    if "count" in moment._fields:
        nu /= _bias_correction(b2, int(moment.count))
    epsilon, inside = _check.at_least(name, "eps", eps, 0.0), _check.at_least(name, "eps_root", eps_root, 0.0)
    if type(moment).__name__ in RMS_STATES and eps_in_sqrt:
        epsilon, inside = 0.0, epsilon + inside
    return PreconditionedOperator(
        operator,
        torch.from_numpy(np.sqrt(nu + inside) + epsilon),
        weight_decay=weight_decay,
        decoupled_weight_decay=decoupled_weight_decay,
    )


@renamed(num_steps="num_products")
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
    **options: Any,
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
        **options: Options of :func:`eigencurve.hessian.estimate_spectrum`.

    Returns:
        The schedule, ready for :func:`eigencurve.adapters.optax.optax_schedule`, and the estimate behind it.

    Warns:
        UserWarning: The estimate has not settled, or the run is too short for the curve to decay.
    """
    total = whole_steps("jax_schedule", "total_steps", total_steps, minimum=1)
    settings = EstimateSettings(weight_decay=weight_decay, total_steps=total, **options)
    estimate = run_estimate(hessian_operator(loss, params, batches), settings)
    warn_if_unsettled("jax_schedule", estimate)
    return schedule_of(estimate, lr, min_lr, beta), estimate


def _second_moment(state: Any) -> Any:
    """The one state in the tree that has a second moment."""

    def has_one(node: Any) -> bool:
        return type(node).__name__ in SECOND_MOMENT_STATES

    moments = [node for node in jax.tree.leaves(state, is_leaf=has_one) if has_one(node)]
    if len(moments) != 1:
        need = "an optax state with one of " + ", ".join(SECOND_MOMENT_STATES)
        remedy = "For another optimizer, pass the diagonal of P to operator.preconditioned_by."
        _check.refuse("preconditioned_by", "state", need, f"{len(moments)} of them", remedy)
    return moments[0]


def _bias_correction(b2: float | None, count: int) -> float:
    if b2 is None:
        _check.refuse("preconditioned_by", "b2", "given, because the state is bias-corrected", b2)
    decay = _check.at_least("preconditioned_by", "b2", b2, 0.0)
    if decay >= 1:
        _check.refuse("preconditioned_by", "b2", "< 1", decay)
    return 1.0 - float(decay**count)


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
        remedy = ("Pass ", _check.Arg("count"), ", a function that returns the number of examples in a batch.")
        _check.refuse("hessian_operator", "batches", "made of arrays with a leading dimension", batch, remedy)
    return int(sizes[0])


def _require_scalar(loss: Callable[[Any, Any], jax.Array], params: Any, batch: Any) -> None:
    result = jax.eval_shape(loss, params, batch)
    if getattr(result, "shape", None) != ():
        _check.refuse("hessian_operator", "loss", "a scalar: the mean over the batch", result, "Use jnp.mean.")
