"""The module to plan and its example inputs: ``pkg:Class`` or a transformers config, without any weights.

Modules are built on the meta device, so that a model of any size takes no memory.  Example inputs come, in this order
of precedence, from ``--input name=dtype[shape]``, a function ``pkg:example_inputs``, or the module's own method
``example_inputs()``; they give only dtypes, shapes and whether a gradient is wanted.
"""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from planner.errors import DocumentInvalid, NotFound

INPUT_TEXT = re.compile(r"^(?P<name>[A-Za-z_]\w*)=(?P<dtype>[a-z]+\d*)\[(?P<shape>\d+(,\d+)*)\]$")


@dataclass(frozen=True, slots=True)
class ModuleSource:
    """A module on the meta device and its inputs, by position."""

    reference: str
    arguments: Mapping[str, Any]
    module: nn.Module
    inputs: tuple[Tensor, ...]
    input_names: tuple[str, ...]
    dtype: torch.dtype


def load_module(
    reference: str,
    arguments: Mapping[str, Any] | None = None,
    inputs: Sequence[str] = (),
    inputs_function: str | None = None,
    dtype: str = "bfloat16",
) -> ModuleSource:
    """Build ``pkg:Class`` on the meta device.  Raises NotFound (no such class) or DocumentInvalid (arguments)."""
    width, chosen = torch_dtype(dtype, "--dtype"), dict(arguments or {})
    module = _construct(_attribute(reference, "--module"), chosen, reference)
    given = _given_inputs(module, inputs, inputs_function)
    return _source(reference, chosen, module, given, width)


def load_transformers_module(
    config: str, batch: int, sequence: int, inputs: Sequence[str] = (), dtype: str = "bfloat16"
) -> ModuleSource:
    """The causal language model of a transformers ``config.json`` with its next-token loss, on the meta device.

    Raises NotFound or DocumentInvalid that names the file.
    """
    from planner.shard.torch_graph.transformers_model import REFERENCE, LanguageModelLoss, read_config

    width, arguments = torch_dtype(dtype, "--dtype"), {"config": read_config(config)}
    try:
        with torch.device("meta"):
            module = LanguageModelLoss(**arguments)
    except DocumentInvalid as error:
        raise DocumentInvalid(error.what, where=config, hint=error.hint) from error
    given = _given_inputs(module, inputs, None) if inputs else module.example_inputs(batch, sequence)
    return _source(REFERENCE, arguments, module, given, width)


def torch_dtype(name: str, where: str) -> torch.dtype:
    """``bfloat16`` -> torch.bfloat16.  Raises DocumentInvalid."""
    found = getattr(torch, name, None)
    if isinstance(found, torch.dtype):
        return found
    raise DocumentInvalid(f"torch has no dtype {name!r}", where=where, hint="write bfloat16, float32, int64, ..")


def _source(
    reference: str, arguments: dict[str, Any], module: nn.Module, given: Sequence[Tensor], dtype: torch.dtype
) -> ModuleSource:
    module = module.to(dtype)
    inputs = tuple(_in_dtype(each, dtype) for each in given)
    return ModuleSource(reference, arguments, module, inputs, _names(module, len(inputs)), dtype)


def _in_dtype(tensor: Tensor, dtype: torch.dtype) -> Tensor:
    width = dtype if tensor.dtype.is_floating_point else tensor.dtype
    made = torch.empty(tensor.shape, dtype=width, device="meta")
    return made.requires_grad_(tensor.requires_grad)


def _attribute(reference: str, where: str) -> Any:
    package, colon, name = reference.partition(":")
    if not colon or not package or not name:
        raise DocumentInvalid(
            f"{reference!r} names no attribute", where=where, hint="write pkg.module:Name, such as models.dit:Block"
        )
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(package)
    except ModuleNotFoundError as error:
        raise NotFound(
            f"no module {error.name!r} to import {reference} from",
            where=where,
            hint="run where the package can be imported, or install it beside meshwright",
        ) from error
    for part in name.split("."):
        if not hasattr(found, part):
            near = ", ".join(sorted(key for key in vars(found) if isinstance(getattr(found, key), type))[:8])
            raise NotFound(f"{package} has no {name!r}", where=where, hint=f"its classes: {near or 'none'}")
        found = getattr(found, part)
    return found


def _construct(kind: Any, arguments: Mapping[str, Any], reference: str) -> nn.Module:
    if not (isinstance(kind, type) and issubclass(kind, nn.Module)):
        raise DocumentInvalid(
            f"{reference} is no nn.Module class", where="--module", hint="name a subclass of nn.Module"
        )
    try:
        with torch.device("meta"):
            return kind(**arguments)
    except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
        raise DocumentInvalid(
            f"{reference} cannot be built: {first_line(error)}",
            where="--module-args",
            hint="give its constructor arguments as JSON; a constructor may not read values of tensors",
        ) from error


def _given_inputs(module: nn.Module, texts: Sequence[str], function: str | None) -> Sequence[Tensor]:
    if texts:
        return [_tensor_of(text) for text in texts]
    if function is not None:
        made = _call_for_inputs(_attribute(function, "--inputs-function"), "--inputs-function")
    elif callable(getattr(module, "example_inputs", None)):
        made = _call_for_inputs(module.example_inputs, "example_inputs()")
    else:
        raise DocumentInvalid(
            "nothing says what the module is called with",
            where="--input",
            hint='give --input "x=bfloat16[2,128,64]" once per argument, or the method example_inputs()',
        )
    flat = [made] if isinstance(made, Tensor) else list(made)
    wrong = next((each for each in flat if not isinstance(each, Tensor)), None)
    if wrong is not None:
        raise DocumentInvalid(
            f"an example input is a {type(wrong).__name__}, not a tensor",
            where="--input",
            hint="return tensors by position; put other arguments into the constructor",
        )
    return flat


def _call_for_inputs(function: Any, where: str) -> Any:
    try:
        with torch.device("meta"):
            return function()
    except (TypeError, ValueError, RuntimeError, NotImplementedError) as error:
        raise DocumentInvalid(f"example inputs cannot be made: {first_line(error)}", where=where) from error


def _tensor_of(text: str) -> Tensor:
    match = INPUT_TEXT.match(text.replace(" ", ""))
    if match is None:
        raise DocumentInvalid(
            f"cannot read the input {text!r}", where="--input", hint="write name=dtype[shape]: x=bfloat16[2,128,64]"
        )
    shape = [int(size) for size in match["shape"].split(",")]
    return torch.empty(shape, dtype=torch_dtype(match["dtype"], "--input"), device="meta")


def _names(module: nn.Module, count: int) -> tuple[str, ...]:
    code = getattr(type(module).forward, "__code__", None)
    known = code.co_varnames[1 : code.co_argcount] if code is not None else ()
    return tuple(known[index] if index < len(known) else f"input_{index}" for index in range(count))


def first_line(error: BaseException) -> str:
    """What an exception says, in one line."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]
