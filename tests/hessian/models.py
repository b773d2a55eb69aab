"""Small float64 models with data, and their dense Hessians by autograd."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from eigencurve.hessian import HessianOperator


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(2, 3, batch_first=True)
        self.head = nn.Linear(3, 2)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.lstm(x)[0][:, -1])


class Attentive(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 6)
        self.head = nn.Linear(2, 2)

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = self.inner(x).unsqueeze(1).chunk(3, dim=-1)
        return self.head(F.scaled_dot_product_attention(q, k, v).mean((1, 2)))


class Convolutional(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, 2, 3, stride=2, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(2)
        self.conv2 = nn.Conv2d(2, 4, 3, padding="same", groups=2)
        self.conv3 = nn.Conv2d(4, 2, 2, dilation=2, groups=2)
        self.bn2 = nn.BatchNorm2d(2)
        self.head = nn.Linear(2, 3)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.bn1(self.conv1(x)))
        x = torch.tanh(self.bn2(self.conv3(self.conv2(x))))
        return self.head(x.mean((2, 3)))


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def scramble(model: nn.Module, seed: int = 1) -> nn.Module:
    """Move parameters and statistics away from their special initial values."""
    source = generator(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=source, dtype=parameter.dtype) * 0.5)
        for name, buffer in model.named_buffers():
            if buffer.is_floating_point():
                buffer.copy_(torch.rand(buffer.shape, generator=source, dtype=buffer.dtype) + 0.5 * ("var" in name))
    return model


def problem(name: str, num_examples: int = 6) -> tuple[nn.Module, object, tuple[Tensor, Tensor]]:
    """A float64 model, its mean loss, and one batch."""
    source = generator(2)
    labels = torch.randint(0, 2, (num_examples,), generator=source)

    def rand(*shape: int) -> Tensor:
        return torch.randn(num_examples, *shape, generator=source, dtype=torch.float64)

    if name == "linear":
        return scramble(nn.Linear(3, 2).double()), F.mse_loss, (rand(3), rand(2))
    if name == "mlp":
        model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double()
        return scramble(model), F.cross_entropy, (rand(3), labels)
    if name == "conv":
        return scramble(Convolutional().double()), F.cross_entropy, (rand(1, 8, 8), labels)
    if name == "lstm":
        return scramble(Recurrent().double()), F.cross_entropy, (rand(4, 2), labels)
    return scramble(Attentive().double()), F.cross_entropy, (rand(4, 2), labels)


def flat_outputs(model: nn.Module, batch: tuple[Tensor, Tensor]) -> tuple[object, Tensor]:
    """Outputs as a function of one flat vector of all parameters, and the current vector."""
    names = [name for name, _ in model.named_parameters()]
    shapes = [p.shape for p in model.parameters()]
    point = torch.cat([p.detach().reshape(-1) for p in model.parameters()])

    def outputs(vector: Tensor) -> Tensor:
        parts = vector.split([shape.numel() for shape in shapes])
        values = {name: part.view(shape) for name, part, shape in zip(names, parts, shapes, strict=True)}
        with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
            return torch.func.functional_call(model, values, (batch[0],))

    return outputs, point


def dense_hessian(model: nn.Module, loss_fn: object, batch: tuple[Tensor, Tensor]) -> Tensor:
    outputs, point = flat_outputs(model, batch)
    return torch.autograd.functional.hessian(lambda w: loss_fn(outputs(w), batch[1]), point)


def dense_gauss_newton(model: nn.Module, loss_fn: object, batch: tuple[Tensor, Tensor]) -> Tensor:
    """JᵀHJ, with each factor from autograd."""
    outputs, point = flat_outputs(model, batch)
    z = outputs(point).detach()
    jacobian = torch.autograd.functional.jacobian(outputs, point).reshape(z.numel(), -1)
    inner = torch.autograd.functional.hessian(lambda u: loss_fn(u, batch[1]), z).reshape(z.numel(), z.numel())
    return jacobian.T @ inner @ jacobian


def dense(operator: object) -> Tensor:
    """Matrix of the operator, column by column."""
    eye = torch.eye(operator.dim, dtype=operator.dtype)
    return torch.stack([operator(column) for column in eye], dim=1)


def small_operator() -> HessianOperator:
    """An operator of numbers that every machine represents exactly, so its fingerprint is the same everywhere."""
    model = nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 2)).double()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(((torch.arange(parameter.numel()) * 5) % 7 - 3).view_as(parameter) / 8)
    x = ((torch.arange(48) * 11) % 13 - 6).view(12, 4).double() / 4
    return HessianOperator(model, F.cross_entropy, (x, torch.arange(12) % 2))
