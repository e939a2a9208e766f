# SPDX-License-Identifier: BSD-3-Clause
"""What is wrong with a model or its calibration data, found before anything takes long."""

from __future__ import annotations

import inspect
import reprlib
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.export import ExportedProgram
from torch.utils import _pytree as pytree
from torch.utils.hooks import RemovableHandle
from torchao.quantization.pt2e.quantizer import Quantizer

from etx_quant.errors import QuantizationError

__all__ = [
    "Batch",
    "captured",
    "check_fit",
    "check_groups",
    "check_model",
    "check_names",
    "check_quantizer",
    "read_batches",
]


@dataclass(frozen=True)
class Batch:
    """The arguments of one call of the model."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any] = field(default_factory=dict)

    @property
    def leaves(self) -> list[Any]:
        """Return the values inside of all arguments."""
        leaves: list[Any] = pytree.tree_leaves((self.args, self.kwargs))
        return leaves


def captured(model: nn.Module, batch: Batch, dynamic_shapes: Any) -> ExportedProgram:
    """Return the model as torch.export has it; an error is one of this package's."""
    try:
        return torch.export.export(
            model,
            batch.args,
            batch.kwargs or None,
            dynamic_shapes=dynamic_shapes,
            strict=False,
        )
    except Exception as error:
        reason = str(error).strip().split("\n\n")[0][:500]
        raise QuantizationError(
            f"torch.export does not capture the model: {type(error).__name__}: {reason}"
        ) from error


def check_model(model: object) -> None:
    """Refuse what is not a module, and modules without memory."""
    if isinstance(model, ExportedProgram):
        raise QuantizationError("model is an ExportedProgram; pass the module, or its .module()")
    if not isinstance(model, nn.Module):
        raise QuantizationError(f"model is {model!r}; expected a torch.nn.Module")
    for name, value in (*model.named_parameters(), *model.named_buffers()):
        if value.device.type == "meta":
            raise QuantizationError(f"model: {name!r} is on device meta; load its weights first")


def check_quantizer(quantizer: object, recipe: object) -> None:
    """Refuse what is not a quantizer, and one beside a recipe."""
    if quantizer is not None and not isinstance(quantizer, Quantizer):
        raise QuantizationError(
            f"quantizer is {quantizer!r}; expected a quantizer of torchao's pt2e flow, or None; "
            "the name of a recipe goes to recipe="
        )
    if quantizer is not None and recipe != "int8":
        raise QuantizationError(f"give a quantizer or recipe={recipe!r}, not both")


def read_batches(calibration: Iterable[Any], model: nn.Module, dynamic: bool) -> list[Batch]:
    """Return the batches; refuse what is not a call, differs from the first, or is not finite.

    ``dynamic``: sizes may differ, and ``torch.export`` is told how.
    """
    if isinstance(calibration, Tensor):
        raise QuantizationError(
            "calibration is a tensor; expected tuples of model arguments, e.g. [(x,) for x in data]"
        )
    if not isinstance(calibration, Iterable):
        raise QuantizationError(
            f"calibration is {calibration!r}; expected tuples of model arguments, one or more"
        )
    order = list(inspect.signature(model.forward).parameters)
    batches = [_batch(made, i, order) for i, made in enumerate(calibration)]
    if not batches:
        raise QuantizationError("calibration is empty: pass at least one tuple of model arguments")
    names = _names(model, batches[0])
    first = names.keys()
    for i, batch in enumerate(batches):
        values = _names(model, batch)
        if values.keys() != first:
            raise QuantizationError(
                f"calibration, batch {i}: it has {_listed(values)}, batch 0 has {_listed(names)}"
            )
        for name, value in values.items():
            _check_value(f"calibration, batch {i}, {name}", value, names[name], dynamic)
    return batches


def _batch(made: Any, number: int, order: list[str]) -> Batch:
    if isinstance(made, dict):
        named = [name for name in order if name in made]
        return Batch((), {name: made[name] for name in dict.fromkeys((*named, *made))})
    if isinstance(made, (tuple, list)):
        return Batch(tuple(made))
    raise QuantizationError(
        f"calibration, batch {number}: it is a {type(made).__name__}; expected a tuple of the "
        "model's arguments, (x,) for one, or a dict of keyword arguments"
    )


def _names(model: nn.Module, batch: Batch) -> dict[str, Any]:
    """Return the values of a batch by the name of the argument, and their place in it."""
    parameters = list(inspect.signature(model.forward).parameters)
    named = dict(zip([*parameters, *map(str, range(len(batch.args)))], batch.args, strict=False))
    found = {}
    for name, value in {**named, **batch.kwargs}.items():
        for path, leaf in pytree.tree_leaves_with_path(value):
            found[f"argument {name!r}{pytree.keystr(path)}"] = leaf
    return found


def _listed(values: dict[str, Any]) -> str:
    return ", ".join(values) or "no arguments"


def _check_value(place: str, value: Any, first: Any, dynamic: bool) -> None:
    if not isinstance(value, Tensor) or not isinstance(first, Tensor):
        if type(value) is not type(first):
            raise QuantizationError(
                f"{place}: it is a {type(value).__name__}, in batch 0 a {type(first).__name__}"
            )
        return
    same = value.shape == first.shape or (dynamic and value.dim() == first.dim())
    if value.dtype != first.dtype or not same:
        raise QuantizationError(
            f"{place}: it is {_described(value)}, in batch 0 {_described(first)}; give batches "
            "of one shape, or dynamic_shapes for sizes that differ"
        )
    if value.device.type == "meta" or not value.numel():
        what = "on device meta" if value.numel() else "without elements"
        raise QuantizationError(f"{place}: {_described(value)} {what}; expected values to measure")
    if value.is_floating_point() and not bool(value.isfinite().all()) and not _is_mask(value):
        bad = (~value.isfinite()).nonzero()
        where = tuple(bad[0].tolist())
        raise QuantizationError(
            f"{place}: {len(bad)} of {value.numel()} values are not finite, the first at {where}: "
            f"{float(value[where])}"
        )


def _is_mask(value: Tensor) -> bool:
    """Tell whether a tensor is 0 where something has a part, -inf where not."""
    return bool(((value == 0) | (value == -torch.inf)).all())


def _described(value: Any) -> str:
    if not hasattr(value, "dtype") or not hasattr(value, "shape"):
        return reprlib.repr(value)
    kind = "" if isinstance(value, Tensor) else f"{type(value).__module__} "
    return f"{kind}{str(value.dtype).removeprefix('torch.')}{list(value.shape)}"


def check_fit(model: nn.Module, batch: Batch) -> None:
    """Call the model once; an error names the innermost layer that was called."""
    active: list[str] = []
    names = {module: name for name, module in model.named_modules()}
    hooks = [
        hook
        for module in names
        for hook in (
            module.register_forward_pre_hook(lambda m, _: active.append(names[m])),
            module.register_forward_hook(lambda *_: active.pop() and None),
        )
    ]
    try:
        with torch.no_grad():
            model(*batch.args, **batch.kwargs)
    except Exception as error:
        if _runs(model, batch, hooks):  # torch.cond is compiled, and not with hooks
            return
        inside = next(filter(None, reversed(active)), "")
        layer = f"layer {inside!r} ({type(model.get_submodule(inside)).__name__})"
        place = layer if inside else type(model).__name__
        given = ", ".join(map(_described, batch.leaves))
        text = f"calibration, batch 0: {given} does not fit the model: {place} raises"
        raise QuantizationError(f"{text} {type(error).__name__}: {error}") from error
    finally:
        for hook in hooks:
            hook.remove()


def _runs(model: nn.Module, batch: Batch, hooks: Iterable[RemovableHandle]) -> bool:
    """Tell whether the model can be called without these hooks."""
    for hook in hooks:
        hook.remove()
    try:
        with torch.no_grad():
            model(*batch.args, **batch.kwargs)
    except Exception:
        return False
    return True


def check_names(model: nn.Module, names: Collection[str], place: str) -> None:
    """Refuse names of modules that the model does not have."""
    if isinstance(names, str):
        raise QuantizationError(f"{place} is {names!r}; expected a list of names of modules")
    known = dict(model.named_modules())
    for name in names:
        if name not in known:
            close = [k for k in known if k.rpartition(".")[2] == name.rpartition(".")[2]]
            raise QuantizationError(
                f"{place}: the model has no module {name!r}; it has "
                f"{', '.join(close or list(known)[1:9])}"
            )


def _columns(module: nn.Linear | nn.RNNBase) -> list[int]:
    """Return how long the rows of a layer's weights are, however it makes them."""
    if isinstance(module, nn.Linear):
        return [module.in_features]
    sides = 2 if module.bidirectional else 1
    state = module.proj_size or module.hidden_size
    deep = [sides * state] if module.num_layers > 1 else []
    return [module.input_size, state, *deep, *([module.hidden_size] if module.proj_size else [])]


def check_groups(model: nn.Module, group_size: int | None, keep_float: Collection[str]) -> None:
    """Refuse a group size that does not divide the rows of a linear or recurrent layer's weight."""
    for name, module in model.named_modules():
        kept = any(name == k or name.startswith(f"{k}.") for k in keep_float)
        if kept or not isinstance(module, (nn.Linear, nn.RNNBase)):
            continue
        columns = _columns(module)
        undivided = next((n for n in columns if group_size and n % group_size), None)
        if undivided is not None:
            raise QuantizationError(
                f"layer {name!r}: a row of its weight has {undivided} numbers, which "
                f"groups of {group_size} do not divide; choose another group_size, or leave the "
                f"layer in float with keep_float=[{name!r}]"
            )
