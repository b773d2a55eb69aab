r"""An LSTM with a double backward that costs about two forward and backward passes.

The fused LSTM of PyTorch has no double backward, and the graph of its single steps is several times slower. Here a
layer is one function of autograd. What does not depend on the step before is computed for all steps at once; each step
is left with one matrix product and a few operations on its gates.

Notation, for each step: a = x Uᵀ + h₋ Wᵀ + b are the inputs of the gates i, f, g and o, c = f c₋ + i g is the cell, and
h = o tanh(c) the output. The gradients of a, c and h are δ, γ and η. A name with ``_dot`` is the derivative in the
direction of the vector that the Hessian is multiplied with.

A product needs one sweep back over the steps, the same as for the first derivative: the second derivative returns its
own terms as gradients of h, c and a, and autograd adds them to the gradients from the layers above before the sweep.

Reference: Pearlmutter, Fast exact multiplication by the Hessian, Neural Computation 6 (1994).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd import Function
from torch.autograd.function import once_differentiable


class _Slopes(NamedTuple):
    """First derivatives of all steps: ∂c/∂(i, f, g inputs), ∂h/∂c and ∂h/∂(o input)."""

    cell: Tensor
    through: Tensor
    output: Tensor


class _Bends(NamedTuple):
    """Second derivatives of γ c + η h of all steps, with respect to the inputs of the gates and to the cells."""

    same: Tensor  # each gate's input twice
    inputs: Tensor  # the inputs of i and g
    forget: Tensor  # the input of f, and the cell before
    opened: Tensor  # the input of o, and the cell
    cell: Tensor  # the cell twice


def lstm(
    inputs: Tensor,
    initial: Sequence[Tensor],
    weights: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """``torch.lstm`` without dropout and projections: the outputs, and the last output and cell of each layer."""
    values = inputs.transpose(0, 1) if batch_first else inputs
    num_directions, per_layer = 1 + bidirectional, 4 if has_biases else 2
    last_outputs, last_cells = [], []
    for layer in range(num_layers):
        directions = []
        for backwards in range(num_directions):
            index = layer * num_directions + backwards
            u, w, *biases = weights[index * per_layer : (index + 1) * per_layer]
            bias = sum(biases) if biases else u.new_zeros(len(u))
            read = values.flip(0) if backwards else values
            outputs, cells, _ = _Layer.apply(read, initial[0][index], initial[1][index], u, w, bias)  # type: ignore[no-untyped-call]
            last_outputs.append(outputs[-1])
            last_cells.append(cells[-1])
            directions.append(outputs.flip(0) if backwards else outputs)
        values = torch.cat(directions, -1)
    return values.transpose(0, 1) if batch_first else values, torch.stack(last_outputs), torch.stack(last_cells)


class _Layer(Function):
    """Outputs, cells and gates of all steps, from x, the first h and c, U, W and b.

    Only the second derivative sends gradients to the gates. They are gradients of the gates' inputs a.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, h: Tensor, c: Tensor, u: Tensor, w: Tensor, b: Tensor) -> Any:
        outputs, cells, gates = _forward(x, h, c, u, w, b)
        ctx.save_for_backward(x, h, c, u, w, outputs, cells, gates, *_slopes(gates, cells, _before(cells, c)))
        ctx.set_materialize_grads(False)
        return outputs, cells, gates

    @staticmethod
    def backward(ctx: Any, outputs_grad: Tensor | None, cells_grad: Tensor | None, gates_grad: Tensor | None) -> Any:
        return _LayerBackward.apply(outputs_grad, cells_grad, gates_grad, *ctx.saved_tensors)  # type: ignore[no-untyped-call]


class _LayerBackward(Function):
    """Gradients of x, the first h and c, U, W and b, from the gradients of the outputs, cells and gates' inputs."""

    @staticmethod
    def forward(
        ctx: Any, outputs_grad: Tensor | None, cells_grad: Tensor | None, gates_grad: Tensor | None, *saved: Tensor
    ) -> Any:
        x, h, _, u, w, outputs, _, gates, *slopes = saved
        kept = gates.chunk(4, -1)[1]
        delta, gamma, eta = _backward(outputs_grad, cells_grad, gates_grad, kept, _Slopes(*slopes), w)
        ctx.save_for_backward(*saved, delta, gamma, eta)
        ctx.set_materialize_grads(False)
        ctx.bends = None
        first = gamma[0] * kept[0]
        return delta @ u, delta[0] @ w, first, _outer(delta, x), _outer(delta, _before(outputs, h)), delta.sum((0, 1))

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *directions: Tensor | None) -> Any:
        x, h, c, u, w, outputs, cells, gates, *slopes, delta, gamma, eta = ctx.saved_tensors
        if ctx.bends is None:  # the same for all products
            ctx.bends = _bends(gates, cells, _before(cells, c), gamma, eta)
        x_dot, h_dot, c_dot, u_dot, w_dot, b_dot = (
            torch.zeros_like(value) if direction is None else direction
            for direction, value in zip(directions, (x, h, c, u, w, u[:, 0]), strict=True)
        )
        a_dot = torch.addmm(b_dot, x.flatten(0, 1), u_dot.T)
        a_dot.addmm_(x_dot.flatten(0, 1), u.T).addmm_(_before(outputs, h).flatten(0, 1), w_dot.T)
        outputs_dot, cells_dot, gates_grad, cells_grad, first = _tangent(
            a_dot.view_as(gates), h_dot, c_dot, gates.chunk(4, -1)[1], _Slopes(*slopes), ctx.bends, w
        )
        outputs_grad = torch.zeros_like(eta)
        outputs_grad[:-1] = delta[1:] @ w_dot
        return (
            outputs_dot if ctx.needs_input_grad[0] else None,
            cells_dot if ctx.needs_input_grad[1] else None,
            None,
            delta @ u_dot,
            delta[0] @ w_dot,
            first,
            _outer(delta, x_dot),
            _outer(delta, _before(outputs_dot, h_dot)),
            outputs_grad,
            cells_grad,
            gates_grad,
            *[None] * len(slopes),
        )


def _forward(x: Tensor, h: Tensor, c: Tensor, u: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Outputs, cells and gates."""
    size = h.shape[-1]
    steps = []
    for from_input in x @ u.T + b:
        a = torch.addmm(from_input, h, w.T)
        gates = torch.sigmoid(a)
        gates[:, 2 * size : 3 * size] = torch.tanh(a[:, 2 * size : 3 * size])
        i, f, g, o = gates.chunk(4, -1)
        c = torch.addcmul(i * g, f, c)
        h = o * torch.tanh(c)
        steps.append((h, c, gates))
    outputs, cells, all_gates = (torch.stack(values) for values in zip(*steps, strict=True))
    return outputs, cells, all_gates


def _gate_slopes(gates: Tensor) -> Tensor:
    """Derivatives of the gates with respect to their inputs."""
    i, f, g, o = gates.chunk(4, -1)
    return torch.cat([i * (1 - i), f * (1 - f), 1 - g * g, o * (1 - o)], -1)


def _slopes(gates: Tensor, cells: Tensor, before: Tensor) -> _Slopes:
    i, _, g, o = gates.chunk(4, -1)
    i_slope, f_slope, g_slope, o_slope = _gate_slopes(gates).chunk(4, -1)
    squashed = torch.tanh(cells)
    return _Slopes(
        torch.cat([g * i_slope, before * f_slope, i * g_slope], -1), o * (1 - squashed * squashed), squashed * o_slope
    )


def _bends(gates: Tensor, cells: Tensor, before: Tensor, gamma: Tensor, eta: Tensor) -> _Bends:
    i, f, g, o = gates.chunk(4, -1)
    i_slope, f_slope, g_slope, o_slope = _gate_slopes(gates).chunk(4, -1)
    squashed = torch.tanh(cells)
    rest = 1 - squashed * squashed
    same = [
        gamma * g * i_slope * (1 - 2 * i),
        gamma * before * f_slope * (1 - 2 * f),
        -2 * gamma * i * g * g_slope,
        eta * squashed * o_slope * (1 - 2 * o),
    ]
    return _Bends(
        torch.cat(same, -1),
        gamma * i_slope * g_slope,
        gamma * f_slope,
        eta * o_slope * rest,
        -2 * eta * o * squashed * rest,
    )


def _tangent(
    a_dot: Tensor, h_dot: Tensor, c_dot: Tensor, kept: Tensor, slopes: _Slopes, bends: _Bends, w: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Derivatives of outputs and cells, and of δ, γ and the first cell's gradient at fixed gradients of later steps.

    ``a_dot`` is at first the part that does not depend on the step before; the loop adds the other part in place.
    """
    outputs_dot, cells_dot = torch.empty_like(bends.opened), torch.empty_like(bends.opened)
    i_dot, f_dot, g_dot, o_dot = a_dot.chunk(4, -1)
    steps = zip(a_dot, outputs_dot, cells_dot, kept, slopes.through, slopes.output, strict=True)
    shares = zip(i_dot, f_dot, g_dot, o_dot, *slopes.cell.chunk(3, -1), strict=True)
    h, c = h_dot, c_dot
    for (a, out, cell, keep, through, output), (i, f, g, o, by_i, by_f, by_g) in zip(steps, shares, strict=True):
        a.addmm_(h, w.T)
        c = torch.mul(keep, c, out=cell).addcmul_(by_i, i).addcmul_(by_f, f).addcmul_(by_g, g)
        h = torch.mul(through, c, out=out).addcmul_(output, o)
    delta_dot = a_dot * bends.same
    delta_i, delta_f, delta_g, delta_o = delta_dot.chunk(4, -1)
    delta_i.addcmul_(bends.inputs, g_dot)
    delta_f.addcmul_(bends.forget, _before(cells_dot, c_dot))
    delta_g.addcmul_(bends.inputs, i_dot)
    delta_o.addcmul_(bends.opened, cells_dot)
    gamma_dot = (bends.opened * o_dot).addcmul_(bends.cell, cells_dot)
    before_dot = f_dot * bends.forget
    gamma_dot[:-1] += before_dot[1:]
    return outputs_dot, cells_dot, delta_dot, gamma_dot, before_dot[0]


def _backward(
    outputs_grad: Tensor | None,
    cells_grad: Tensor | None,
    gates_grad: Tensor | None,
    kept: Tensor,
    slopes: _Slopes,
    w: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """δ, γ and η from the last step to the first, each with its source, the given gradient.

    η = η_source + δ₊ W, γ = γ_source + f₊ γ₊ + η ∂h/∂c, δ = δ_source + (γ ∂c/∂a, η ∂h/∂a).
    """
    size = w.shape[1]
    eta = torch.zeros_like(kept) if outputs_grad is None else outputs_grad.clone()
    gamma = torch.zeros_like(kept) if cells_grad is None else cells_grad.clone()
    delta = kept.new_zeros((*kept.shape[:-1], 4 * size)) if gates_grad is None else gates_grad.clone()
    steps = zip(eta, gamma, delta, kept, slopes.through, slopes.output, strict=True)
    shape = kept.shape[:-1]
    shares = zip(delta.view(*shape, 4, size), slopes.cell.view(*shape, 3, size), strict=True)
    after = None
    for (h, c, a, f, through, output), (gates, cell) in reversed(list(zip(steps, shares, strict=True))):
        if after is not None:
            a_after, c_after, f_after = after
            h.addmm_(a_after, w)
            c.addcmul_(f_after, c_after)
        c.addcmul_(h, through)
        gates[:, :3].addcmul_(cell, c[:, None])
        gates[:, 3].addcmul_(output, h)
        after = a, c, f
    return delta, gamma, eta


def _before(values: Tensor, first: Tensor) -> Tensor:
    """The values of the step before each step."""
    return torch.cat([first[None], values[:-1]])


def _outer(delta: Tensor, values: Tensor) -> Tensor:
    """Σ δᵀ v over all steps and examples."""
    return delta.flatten(0, 1).T @ values.flatten(0, 1)
