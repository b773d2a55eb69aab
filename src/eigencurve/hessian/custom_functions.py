"""Whether the user's code in a backward pass computes derivatives: custom functions and gradient hooks."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules import module as torch_modules
from torch.overrides import TorchFunctionMode
from torch.utils.hooks import RemovableHandle

from eigencurve.hessian.differences import central_difference

# Number of random directions in which second derivatives are compared.
NUM_DIRECTIONS = 4
# Steps of finite differences relative to the size of the inputs, by the precision that a function accepts.
STEPS = {torch.float64: (1e-4, 1e-6, 1e-8), torch.float32: (3e-2, 1e-2, 3e-3)}
# A function is wrong if its second derivatives differ from finite differences by more than this share of them.
TOLERANCE = {torch.float64: 1e-3, torch.float32: 0.1}
# Two differences with other steps must agree this much better with each other than with the second derivatives.
AGREEMENT = 0.25
# Inputs are moved by this share of their size, because they may be at a kink, as the zeros of a ReLU are.
JITTER = 1e-2


def wrong_functions(functions: Iterable[type], run: Callable[[], object]) -> dict[str, float]:
    """Names of custom functions whose backward has a wrong derivative, with the relative error of the derivative.

    A backward that computes with detached tensors gives right gradients, but Hessians without a part of the curvature,
    which may be symmetric. So each function is checked alone, on the inputs of its first call in ``run()``: the
    derivative of its backward by autograd is compared with finite differences of its backward. Differences of the whole
    model would include the kinks of ReLU networks, which no second derivative does.

    The functions run in float64, with steps so small that hardly an input crosses a kink; those that accept only
    float32 get longer steps. A function is wrong only if no step agrees with autograd while two steps agree with each
    other. One that cannot be called like this is accepted. ``torch.autograd.gradgradcheck`` has one step, and computes
    whole Jacobians as soon as that step fails at a kink.
    """
    errors = {}
    for function, arguments in _first_calls(functions, run).items():
        for dtype in STEPS:
            try:
                error = _error(function, arguments, dtype)
            except Exception:
                continue
            if error > 0:
                errors[function.__name__] = error
            break
    return errors


def _first_calls(functions: Iterable[type], run: Callable[[], object]) -> dict[Any, tuple[Any, ...]]:
    """Arguments of the first call of each function in ``run()``."""
    calls: dict[Any, tuple[Any, ...]] = {}
    with ExitStack() as stack:
        for function in functions:
            stack.enter_context(_recorded(function, calls))
        run()
    return calls


@contextmanager
def _recorded(function: Any, calls: dict[Any, tuple[Any, ...]]) -> Iterator[None]:
    """Record the arguments of a function's first call; aliases of ``apply`` call ``forward`` too."""
    own, forward = function.__dict__.get("forward"), function.forward
    first = 1 if function.setup_context is torch.autograd.Function.setup_context else 0  # the context

    def recording(*arguments: Any) -> Any:
        calls.setdefault(function, tuple(_detached(a) for a in arguments[first:]))
        return forward(*arguments)

    function.forward = staticmethod(recording)
    try:
        yield
    finally:
        if own is None:
            del function.forward
        else:
            function.forward = own


def _detached(value: Any) -> Any:
    return value.detach().clone().requires_grad_(value.requires_grad) if isinstance(value, Tensor) else value


def _error(function: Any, arguments: Sequence[Any], dtype: torch.dtype) -> float:
    """Relative error of the second derivatives of a function; 0.0 if they are right, or if it cannot be told."""
    source = torch.Generator().manual_seed(0)
    point = [_moved(a, dtype, source) if _is_differentiable(a) else _cast(a, dtype) for a in arguments]
    if not any(map(_is_differentiable, point)):
        return 0.0
    rows = [_derivatives(function, point, dtype, source) for _ in range(NUM_DIRECTIONS)]
    exact, *differences = torch.tensor(rows, dtype=torch.float64).T
    if not bool(torch.isfinite(torch.stack([exact, *differences])).all()):
        return 0.0
    gaps = [float((exact - each).norm()) for each in differences]
    scales = [float(torch.maximum(exact.norm(), each.norm())) for each in differences]
    if any(gap <= TOLERANCE[dtype] * scale for gap, scale in zip(gaps, scales, strict=True)):
        return 0.0
    apart = [float((a - b).norm()) for a, b in pairwise(differences)]
    certain = [min(two) for two, gap in zip(pairwise(gaps), apart, strict=True) if gap <= AGREEMENT * min(two)]
    return min(certain) / max(scales) if certain else 0.0


def _derivatives(function: Any, point: Sequence[Any], dtype: torch.dtype, source: torch.Generator) -> list[float]:
    """Derivative of ⟨r, backward(x, u)⟩ along a direction in x and u, by autograd and by differences of each step."""
    inputs = [a for a in point if _is_differentiable(a)]
    shapes = [out.shape for out in _outputs(function, point)]
    u, moved_u = ([_normal(shape, dtype, source).requires_grad_() for shape in shapes] for _ in range(2))
    r, direction = ([_normal(x.shape, dtype, source) for x in inputs] for _ in range(2))
    direction = [d * _size(x) for d, x in zip(direction, inputs, strict=True)]

    def slope(x: Sequence[Tensor], u: Sequence[Tensor]) -> Tensor:
        rest = iter(x)
        outputs = _outputs(function, [next(rest) if _is_differentiable(a) else a for a in point])
        pulled = torch.autograd.grad(outputs, x, u, create_graph=True, materialize_grads=True)
        return torch.stack([(a * b).sum() for a, b in zip(r, pulled, strict=True)]).sum()

    value = slope(inputs, u)
    variables = [*inputs, *u]
    slopes = (
        torch.autograd.grad(value, variables, materialize_grads=True)
        if value.requires_grad
        else [torch.zeros_like(x) for x in variables]
    )
    exact = sum(float((a * b).sum()) for a, b in zip(slopes, [*direction, *moved_u], strict=True))
    linear = float(slope(inputs, moved_u).detach())  # a backward is linear in u

    def shifted(h: float) -> Tensor:
        return slope([(x.detach() + h * d).requires_grad_() for x, d in zip(inputs, direction, strict=True)], u)

    return [exact, *(float(central_difference(shifted, h).detach()) + linear for h in STEPS[dtype])]


def _outputs(function: Any, arguments: Sequence[Any]) -> list[Tensor]:
    """Outputs of a function that have a gradient; its random numbers are the same in every call."""
    torch.manual_seed(0)
    outputs = function.apply(*arguments)
    return [out for out in (outputs if isinstance(outputs, tuple) else (outputs,)) if _is_differentiable(out)]


def _is_differentiable(value: Any) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point() and value.requires_grad


def _cast(value: Any, dtype: torch.dtype) -> Any:
    return value.to(dtype) if isinstance(value, Tensor) and value.is_floating_point() else value


def _moved(x: Tensor, dtype: torch.dtype, source: torch.Generator) -> Tensor:
    """``x`` with a small random change that keeps its signs; zeros become positive."""
    start = x.detach().to(dtype)
    noise = JITTER * _normal(x.shape, dtype, source).to(x.device)
    away = torch.where(start == 0, noise.abs() * _size(start), start * (1 + noise))
    return away.requires_grad_()


def _normal(shape: torch.Size, dtype: torch.dtype, source: torch.Generator) -> Tensor:
    return torch.randn(shape, generator=source, dtype=dtype)


def _size(x: Tensor) -> float:
    """Root mean square of ``x``, or 1.0 if that is zero."""
    return float(x.detach().square().mean().sqrt()) or 1.0


class HookNotice(TorchFunctionMode):
    """Mode that notices whether a tensor gets a gradient hook, and can leave the hook out.

    Args:
        is_ignored: Whether the hooks are left out.
    """

    def __init__(self, is_ignored: bool = False) -> None:
        super().__init__()
        self.is_ignored, self.has_hooks = is_ignored, False

    def __torch_function__(self, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        """Notice ``tensor.register_hook``; all other calls are unchanged."""
        if func is Tensor.register_hook:
            self.has_hooks = True
            if self.is_ignored:
                return RemovableHandle(OrderedDict())
        return func(*args, **(kwargs or {}))


def hooked_names(model: nn.Module) -> list[str]:
    """Names of the parameters and modules that have gradient hooks."""
    names = [name for name, parameter in model.named_parameters() if parameter._backward_hooks]
    names += [name or "the model" for name, each in model.named_modules() if any(_hooks_of(each))]
    return names + ["all modules"] * bool(torch_modules._global_backward_hooks)


@contextmanager
def without_gradient_hooks(model: nn.Module) -> Iterator[None]:
    """Run a block without the gradient hooks of parameters, modules and intermediate tensors."""
    hooked: list[Any] = [hooks for module in model.modules() for hooks in _hooks_of(module)]
    hooked += [parameter._backward_hooks for parameter in model.parameters()]
    hooked.append(torch_modules._global_backward_hooks)
    before = [(hooks, dict(hooks)) for hooks in hooked if hooks]
    try:
        for hooks, _ in before:
            hooks.clear()
        with HookNotice(is_ignored=True):
            yield
    finally:
        for hooks, content in before:
            hooks.update(content)


def _hooks_of(module: nn.Module) -> tuple[Any, Any]:
    return module._backward_hooks, module._backward_pre_hooks
