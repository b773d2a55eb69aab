"""Optimizer and model states that PyTorch saved, read without executing code from the file."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor, nn
from torch.optim import Adagrad, Adam, AdamW, Optimizer, RMSprop

from eigencurve import _check
from eigencurve._check import Arg, Words

# Names under which training checkpoints keep the states of the optimizer and of the model.
OPTIMIZER_KEYS = ("optimizer", "optimizer_state", "optimizer_state_dict", "optimizer_states")
MODEL_KEYS = ("model", "model_state", "model_state_dict", "state_dict")
# Settings that tell an optimizer from all others, and the tensor of its state that becomes the preconditioner.
Kind: TypeAlias = type[Adam] | type[RMSprop] | type[Adagrad]
MARKS: dict[Kind, tuple[set[str], str]] = {
    Adam: ({"betas", "amsgrad"}, "exp_avg_sq"),
    RMSprop: ({"alpha", "centered"}, "square_avg"),
    Adagrad: ({"lr_decay", "initial_accumulator_value"}, "sum"),
}
ADAMS = {"adam": Adam, "adamw": AdamW}
SAVE = "Save it with torch.save(optimizer.state_dict(), path)."


def load_preconditioner(
    path: Path, model: nn.Module, parameters: Mapping[str, Tensor], kind: str | None = None
) -> Optimizer | dict[str, Tensor] | Tensor:
    """The optimizer, or the diagonal of P, that a file holds, for ``operator.preconditioned_by``.

    A file of PyTorch holds the ``state_dict()`` of Adam, AdamW, RMSprop or Adagrad, alone or in the checkpoint of a
    training run. Its parameters are matched by name if it has names (from ``Adam(model.named_parameters())``), and
    otherwise in the order of ``parameters``, or of the model if their numbers differ. An .npz file holds the diagonal
    of P: one array per parameter name, or one flat array.

    Args:
        path: The file.
        model: Model that the optimizer trains.
        parameters: Parameters of the operator, by name, in their order.
        kind: ``"adam"`` or ``"adamw"``, for states of PyTorch before 2.7, which do not tell the two apart.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is of another kind or damaged, or does not fit the model.
    """
    if path.suffix.lower() == ".npz":
        return _diagonal(path)
    state = _optimizer_state(path, _load(path))
    groups = _named_groups(path, state, model, parameters)
    _require_fit(path, state, groups)
    optimizer = _class_of(path, state, kind)([{"params": list(group.values())} for group in groups])
    optimizer.load_state_dict(state)
    return optimizer


def load_start_state(path: Path, parameters: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The parameters of a model at the start of its run, from its ``state_dict()`` or the checkpoint of a training run.

    Args:
        path: The file.
        parameters: Parameters of the operator, at the end of the run, by name.

    Raises:
        FileNotFoundError: If there is no such file.
        ValueError: If the file is of another kind, does not fit the parameters, or holds the same values.
    """
    loaded = _load(path)
    state = next((loaded[key] for key in MODEL_KEYS if key in loaded), loaded) if isinstance(loaded, Mapping) else {}
    for name, parameter in parameters.items():
        part = state.get(name) if isinstance(state, Mapping) else None
        if not isinstance(part, Tensor) or part.shape != parameter.shape:
            got = f"shape {tuple(part.shape)}" if isinstance(part, Tensor) else _kind(state)
            remedy = "Save it with torch.save(model.state_dict(), path)."
            raise _error(path, f"a state with {name} of shape {tuple(parameter.shape)}", got, remedy)
    if all(torch.equal(state[name].to(parameter), parameter) for name, parameter in parameters.items()):
        raise _error(path, "the state at the start of the run", "the state of the model itself")
    return {name: state[name] for name in parameters}


def _load(path: Path) -> Any:
    if not path.exists():
        raise FileNotFoundError(2, "no such file", str(path))
    try:
        with warnings.catch_warnings():  # about pickle protocols, in files that are refused
            warnings.simplefilter("ignore")
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception:  # the reader fails in many ways on a file of another kind
        need = "a file that torch.save wrote, with tensors, numbers, lists and dicts only"
        remedy = f"Other objects could execute code, so they are not loaded. {SAVE}"
        raise _error(path, need, "another one", remedy) from None


def _optimizer_state(path: Path, loaded: Any) -> dict[str, Any]:
    """The state of the optimizer, from the file itself or from a training checkpoint."""
    keys = [key for key in OPTIMIZER_KEYS if key in loaded] if isinstance(loaded, Mapping) else []
    for candidate in (loaded, *(loaded[key] for key in keys)):
        if isinstance(candidate, list | tuple) and len(candidate) == 1:  # Lightning keeps a list
            candidate = candidate[0]
        groups = candidate.get("param_groups") if isinstance(candidate, Mapping) else None
        if not isinstance(groups, list) or not groups or not isinstance(candidate.get("state"), Mapping):
            continue
        if all(isinstance(group, Mapping) and isinstance(group.get("params"), list) for group in groups):
            return dict(candidate)
    raise _error(path, "the state of one optimizer, or a checkpoint that contains it", _kind(loaded), SAVE)


def _class_of(path: Path, state: Mapping[str, Any], kind: str | None) -> Kind:
    """The class of the optimizer. A state does not name it, but its settings differ."""
    first = state["param_groups"][0]
    for optimizer, (marks, needed) in MARKS.items():
        if marks <= set(first):
            if any(entry and needed not in entry for entry in state["state"].values()):
                raise _error(path, f"a state of torch.optim, with {needed!r} for every parameter", "another one")
            return optimizer if optimizer is not Adam else _adam_or_adamw(path, state["param_groups"], kind)
    names = ", ".join(("AdamW", *(optimizer.__name__ for optimizer in MARKS)))
    remedy = "For another optimizer, save the diagonal of P in an .npz file. SGD has none: leave the option out."
    raise _error(path, f"a state of {names}", f"settings {', '.join(sorted(set(first) - {'params'}))}", remedy)


def _adam_or_adamw(path: Path, groups: Sequence[Mapping[str, Any]], kind: str | None) -> type[Adam]:
    if kind is not None:
        return ADAMS[_check.choice("load_preconditioner", "optimizer", kind, tuple(ADAMS))]
    decoupled = [group["decoupled_weight_decay"] for group in groups if "decoupled_weight_decay" in group]
    if len(decoupled) < len(groups) and any(group["weight_decay"] for group in groups):
        remedy = ("PyTorch before 2.7 did not save it: pass 'adam' or 'adamw' as ", Arg("optimizer"), ".")
        raise _error(path, "a state that tells Adam from AdamW", "one with weight decay that does not", remedy)
    return AdamW if decoupled and all(decoupled) else Adam


def _named_groups(
    path: Path, state: Mapping[str, Any], model: nn.Module, parameters: Mapping[str, Tensor]
) -> list[dict[str, Tensor]]:
    """The parameters of each group of the state, by name."""
    everything = dict(model.named_parameters())
    sizes = [len(group["params"]) for group in state["param_groups"]]
    saved = [name for group in state["param_groups"] for name in group.get("param_names", ())]
    if len(saved) == sum(sizes) and all(name in everything for name in saved):
        names = saved
    else:
        trained = [name for name, parameter in everything.items() if parameter.requires_grad]
        fitting = [list(given) for given in (parameters, trained, everything) if len(given) == sum(sizes)]
        if not fitting:
            raise _error(path, f"a state of the model's {len(trained)} parameters", sum(sizes))
        names = fitting[0]
        if len(sizes) > 1:
            warnings.warn(
                f"{path} has {len(sizes)} groups without parameter names, which are matched in the order of the model. "
                "If the groups are in another order, create the optimizer with named_parameters() and save it again.",
                stacklevel=3,
            )
    remaining = iter(names)
    return [{name: everything[name] for name in (next(remaining) for _ in range(size))} for size in sizes]


def _require_fit(path: Path, state: Mapping[str, Any], groups: Sequence[Mapping[str, Tensor]]) -> None:
    """Raise if a tensor of the state has another shape than its parameter."""
    keys = [key for group in state["param_groups"] for key in group["params"]]
    pairs = [pair for group in groups for pair in group.items()]
    for key, (name, parameter) in zip(keys, pairs, strict=True):
        for part in state["state"].get(key, {}).values():
            if isinstance(part, Tensor) and part.dim() > 0 and part.shape != parameter.shape:
                remedy = (
                    "Parameters are matched in their order; if the optimizer has several groups, create it with "
                    "named_parameters() and save it again."
                )
                need = f"a state of shape {tuple(parameter.shape)} for the parameter {name}"
                raise _error(path, need, tuple(part.shape), remedy)


def _diagonal(path: Path) -> dict[str, Tensor] | Tensor:
    try:
        with np.load(path, allow_pickle=False) as archive:
            arrays = {name: torch.from_numpy(np.asarray(archive[name], dtype=np.float64)) for name in archive.files}
    except (ValueError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise _error(path, "an .npz archive of plain arrays", str(error)) from None
    flat = list(arrays.values())
    return flat[0] if len(flat) == 1 and flat[0].dim() == 1 else arrays


def _kind(value: Any) -> str:
    if not isinstance(value, Mapping):
        return type(value).__name__
    return f"a dict of {', '.join(map(str, list(value)[:6]))}" if value else "an empty dict"


def _error(path: Path, constraint: str, value: object, remedy: Words = "") -> ValueError:
    parts = (remedy,) if isinstance(remedy, str) else remedy
    where = f"The file is {path}." + (" " if remedy else "")
    return _check.ArgumentValueError("load_state", "path", constraint, value, (where, *parts))
