"""What a product depends on besides its vector, and whether it has changed since the last one."""

from __future__ import annotations

import functools
import types
from collections.abc import Iterator, Mapping
from enum import Enum
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

# Values that count by equality.
PLAIN = (bool, int, str, bytes, complex, type(None), torch.dtype, torch.device)
# A tensor outside the model and its examples counts by its place in memory and its version above this number of bytes,
# and a container by its identity and length above this number of entries.
LARGEST_COPY = 1 << 24
LARGEST_CONTAINER = 1000
INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}


class Change(Enum):
    """What has changed: nothing, only the values of tensors, or something else too."""

    NOTHING = 0
    VALUES = 1
    SETTINGS = 2


class Snapshot:
    """The state of a model, its examples and its objective at one moment, to compare with a later one.

    The version counter of a tensor is not enough: writes to ``parameter.data`` and fused optimizers do not change it.
    A hash or a sum could miss a change, and copies to the CPU are slow. So the bits of all tensors are compared with
    copies of them, as integers, because 0.0 equals -0.0 and NaN equals nothing. This takes the memory of the tensors
    once more, and reads them once per comparison. A tensor that moved to another place in memory counts as changed,
    because a graph still refers to the old place.

    Everything else is compared by equality: the fields of modules (such as the probability of a dropout), their
    layers, hooks and parametrisations, and for the objective also closures, defaults, and global variables that the
    user's functions name. Objects of other kinds count by their identity and their fields.

    Args:
        model: The model, with all its tensors.
        batch: The examples.
        objective: The functions from the model to the loss.
        with_training: Whether the training flags of modules matter.
        with_values: Whether to copy the tensors; without, only settings are compared.
    """

    def __init__(
        self, model: nn.Module, batch: Any, objective: Any, *, with_training: bool, with_values: bool = True
    ) -> None:
        self._roots, self._with_training = (model, batch, objective), with_training
        walk = self._walk()
        self._facts, self._places = walk.facts, walk.places
        self._copies = [_bits(tensor).clone() for tensor in walk.tensors] if with_values else None

    def change(self) -> Change:
        """What has changed since."""
        walk = self._walk()
        if walk.facts != self._facts:
            return Change.SETTINGS
        if self._copies is None:
            return Change.NOTHING
        pairs = zip(walk.tensors, self._copies, strict=True)
        same = walk.places == self._places and all(torch.equal(_bits(tensor), copy) for tensor, copy in pairs)
        return Change.NOTHING if same else Change.VALUES

    def _walk(self) -> _Walk:
        walk, (model, batch, objective) = _Walk(self._with_training), self._roots
        walk.visit(model, batch)
        walk.largest_copy = LARGEST_COPY
        walk.visit(objective)
        return walk


class _Same:
    """An object that counts by its identity, and is kept alive so that no other one gets its address."""

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and self.value is other.value

    __hash__ = None  # type: ignore[assignment]


class _Walk:
    """One visit of everything that can be reached from some objects, each object once, always in the same order.

    Attributes:
        facts: What counts by equality.
        tensors: Tensors that count by their bits.
        places: Addresses and versions of tensors. A graph refuses tensors of another version, even with the same bits.
        largest_copy: Maximum number of bytes of a tensor that counts by its bits.
    """

    def __init__(self, with_training: bool) -> None:
        self.with_training = with_training
        self.facts: list[Any] = []
        self.tensors: list[Tensor] = []
        self.places: list[tuple[int, int]] = []
        self.largest_copy = float("inf")
        self._seen: set[int] = set()
        self._is_inside = False

    def visit(self, *values: Any) -> None:
        """Record ``values`` and what they refer to."""
        for value in values:
            kind = type(value)
            if kind in PLAIN:
                self.facts.append(value)
            elif kind is float:
                self.facts.append(repr(value))  # NaN is not equal to itself
            elif id(value) in self._seen:
                self.facts.append(_Same(value))
            else:
                self._seen.add(id(value))
                self.facts.append(kind)
                self._visit_new(value)

    def _visit_new(self, value: Any) -> None:
        match value:
            case Tensor():
                self._tensor(value)
            case nn.Module():
                self._module(value)
            case np.ndarray() if value.dtype != object and value.nbytes <= LARGEST_COPY:
                self.facts.append((value.shape, value.tobytes()))
            case Mapping() | list() | tuple() | set() | frozenset():
                self._container(value)
            case types.FunctionType():
                self._function(value)
            case types.MethodType():
                self.visit(value.__func__, value.__self__)
            case functools.partial():
                self.visit(value.func, value.args, value.keywords)
            case _:
                self._object(value)

    def _tensor(self, tensor: Tensor) -> None:
        hooks = (getattr(tensor, "_backward_hooks", None) or {}).values()
        self.facts.append((tensor.dtype, tensor.shape, tensor.device, tensor.layout, tensor.requires_grad))
        self.facts.extend(map(_Same, hooks))
        if tensor.layout != torch.strided or tensor.device.type == "meta":
            self.facts.append(_Same(tensor))
            return
        self.places.append((tensor.data_ptr(), 0 if tensor.is_inference() else tensor._version))
        if tensor.numel() * tensor.element_size() <= self.largest_copy:
            self.tensors.append(tensor)

    def _module(self, module: nn.Module) -> None:
        for name, value in vars(module).items():
            is_empty = isinstance(value, dict | set) and not value
            if not is_empty and (name != "training" or self.with_training):
                self.facts.append(name)
                self.visit(value)
        kind = type(module)
        if not _is_library(kind.__module__, getattr(kind.forward, "__code__", None)):
            self.visit(kind.forward)

    def _container(self, values: Any) -> None:
        self.facts.append(len(values))
        if len(values) > LARGEST_CONTAINER:
            self.facts.append(_Same(values))
        elif isinstance(values, Mapping):
            for key, value in values.items():
                self.facts.append(key if type(key) in (str, int) else _Same(key))
                self.visit(value)
        else:
            self.visit(*values)

    def _function(self, function: types.FunctionType) -> None:
        """A function: its code, defaults and closure and, if it is the user's, the global variables that it names."""
        self.facts.append(_Same(function.__code__))
        self.visit(function.__defaults__, function.__kwdefaults__)
        for cell in function.__closure__ or ():
            try:
                self.visit(cell.cell_contents)
            except ValueError:  # an empty cell
                self.facts.append(None)
        if not _is_library(function.__module__, function.__code__):
            values = (function.__globals__.get(name) for name in _names(function.__code__))
            self.visit(*(v for v in values if not isinstance(v, types.ModuleType | type | types.BuiltinFunctionType)))

    def _object(self, value: Any) -> None:
        """An object of another kind, such as a trainer: its identity and its fields.

        Of an object within such an object, only plain values and tensors count, because it may lead to everything else.
        """
        self.facts.append(_Same(value))
        if isinstance(value, type | torch.optim.Optimizer):
            return
        is_inner, self._is_inside = self._is_inside, True
        for name, field in getattr(value, "__dict__", {}).items():
            if not is_inner or type(field) in PLAIN or isinstance(field, float | Tensor):
                self.facts.append(name)
                self.visit(field)
        self._is_inside = is_inner


def _bits(tensor: Tensor) -> Tensor:
    """The numbers of a tensor as integers with the same bits, in the same memory."""
    plain = tensor.detach().resolve_conj().resolve_neg()
    if plain.is_complex():
        plain = torch.view_as_real(plain)
    return plain.view(INTEGERS[plain.element_size()])


def _is_library(module: str | None, code: types.CodeType | None) -> bool:
    """Whether code is installed, not the user's own, so that its global variables count as constant."""
    package = (module or "").partition(".")[0]
    return package in ("torch", "eigencurve") or code is None or "site-packages" in code.co_filename


def _names(code: types.CodeType) -> Iterator[str]:
    """Names that a function and the functions in it may look up in the global variables."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)
