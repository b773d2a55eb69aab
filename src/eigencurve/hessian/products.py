"""Curvature-vector products on one batch: functions that build their graphs once and can be called many times."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import BackwardCFunction
from torch.autograd.graph import Node

# v -> Hv, with one tensor per parameter on both sides.
Product = Callable[[Sequence[Tensor]], Sequence[Tensor]]
HAS_HOOKS = "the model has hooks for saved tensors"


@dataclass(frozen=True)
class GraphProduct:
    """A product on graphs that are kept.

    Attributes:
        multiply: The function v -> Hv.
        is_native: Whether it runs only PyTorch's and this package's code, which no mode, buffer or random state of the
            model affects.
        functions: The user's ``torch.autograd.Function`` classes of which the product takes second derivatives.
    """

    multiply: Product
    is_native: bool
    functions: frozenset[type] = frozenset()

    def __call__(self, vector: Sequence[Tensor]) -> Sequence[Tensor]:
        """The product."""
        return self.multiply(vector)


def hessian_product(loss: Tensor, parameters: Sequence[Tensor]) -> GraphProduct:
    r"""Return v -> Hv for a loss, from a gradient graph that is built once.

    .. math:: Hv = \nabla_w \langle \nabla_w \ell(w), v \rangle

    Each product is one backward pass through the graph of the gradient. Counted in convolutions, it costs as much as
    two forward and backward passes; rebuilding the graph for every product would cost three.

    Reference: Pearlmutter, Fast exact multiplication by the Hessian, Neural Computation 6 (1994).
    """
    gradient = torch.autograd.grad(loss, parameters, create_graph=True, materialize_grads=True)
    curved = [i for i, part in enumerate(gradient) if part.requires_grad]
    _require_second_derivatives(gradient)

    def product(vector: Sequence[Tensor]) -> Sequence[Tensor]:
        if not curved:  # the loss is linear in every parameter
            return [torch.zeros_like(part) for part in vector]
        return torch.autograd.grad(
            [gradient[i] for i in curved],
            parameters,
            [vector[i] for i in curved],
            retain_graph=True,
            materialize_grads=True,
        )

    return _graph_product(product, [loss, *gradient], [loss, *gradient])


def gauss_newton_product(
    outputs: Tensor, loss_of: Callable[[Tensor], Tensor], parameters: Sequence[Tensor]
) -> GraphProduct:
    r"""Return v -> Gv for the Gauss-Newton matrix of ``loss_of(outputs)``, from graphs that are built once.

    .. math:: G = J^\top \nabla_z^2 \ell(z)\, J, \qquad J = \partial z / \partial w

    :math:`J^\top u` is linear in u, and its derivative with respect to u gives :math:`Jv`. A product is therefore three
    backward passes.

    Reference: Schraudolph, Fast curvature matrix-vector products, Neural Computation 14 (2002).
    """
    leaf = outputs.detach().requires_grad_()
    slope = torch.autograd.grad(loss_of(leaf), leaf, create_graph=True, materialize_grads=True)[0]
    dual = torch.zeros_like(outputs, requires_grad=True)
    pulled = torch.autograd.grad(outputs, parameters, dual, create_graph=True, materialize_grads=True)
    _require_second_derivatives(pulled)

    def product(vector: Sequence[Tensor]) -> Sequence[Tensor]:
        if not slope.requires_grad:  # the loss is linear in the outputs
            return [torch.zeros_like(part) for part in vector]
        used = [i for i, part in enumerate(pulled) if part.requires_grad]
        pushed = torch.autograd.grad([pulled[i] for i in used], dual, [vector[i] for i in used], retain_graph=True)[0]
        bent = torch.autograd.grad(slope, leaf, pushed, retain_graph=True)[0]
        return torch.autograd.grad(outputs, parameters, bent, retain_graph=True, materialize_grads=True)

    return _graph_product(product, [*pulled, slope, outputs], [slope])


def with_hooks_noticed(build: Callable[[], GraphProduct]) -> GraphProduct:
    """The product that ``build`` returns; it is not native if its graph has hooks for saved tensors.

    Activation checkpointing installs such hooks, so that a backward pass runs parts of the model again.
    """
    try:
        with torch.autograd.graph.disable_saved_tensors_hooks(HAS_HOOKS):
            return build()
    except RuntimeError as error:
        if HAS_HOOKS not in str(error):
            raise
        return replace(build(), is_native=False)


def _graph_product(multiply: Product, tensors: Sequence[Tensor], twice: Sequence[Tensor]) -> GraphProduct:
    """A product whose backward passes go through the graphs of ``tensors``, twice through the graphs of ``twice``.

    Functions of this package depend on nothing but their tensors, so they count as native.
    """
    theirs = _functions(twice)
    return GraphProduct(multiply, not _functions(tensors), frozenset(f for f in theirs if not _is_in(f, "torch")))


def _functions(tensors: Sequence[Tensor]) -> set[Any]:
    """Classes ``torch.autograd.Function`` that a backward pass calls, without the functions of this package."""
    functions = {node._forward_cls for node in _nodes(tensors) if isinstance(node, BackwardCFunction)}  # type: ignore[attr-defined]
    return {function for function in functions if not _is_in(function, __package__)}


def _is_in(function: type, package: str) -> bool:
    return f"{function.__module__}.".startswith(f"{package}.")


def _require_second_derivatives(gradient: Sequence[Tensor]) -> None:
    """Raise RuntimeError if a backward pass is marked ``once_differentiable``.

    PyTorch cuts such a pass out of the graph and leaves a node that raises when it is reached. If nothing else connects
    a gradient to the parameters, the node is never reached and the product would silently be zero.
    """
    if any(node.name() in ("torch::autograd::Error", "DelayedError") for node in _nodes(gradient)):
        raise RuntimeError("a backward pass in the model is marked with @once_differentiable")


def _nodes(gradient: Sequence[Tensor]) -> Iterator[Node]:
    """All nodes of the graph."""
    waiting = [part.grad_fn for part in gradient if part.grad_fn is not None]
    seen = set(waiting)
    while waiting:
        node = waiting.pop()
        yield node
        following = {after for after, _ in node.next_functions if after is not None} - seen
        seen |= following
        waiting.extend(following)
