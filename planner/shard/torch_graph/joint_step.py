"""The ATen operators of one training step of a module: forward, loss and backward in one graph.

``make_fx`` runs the module on fake tensors: functional parameters, a scalar loss (the module's own, or the sum of what
it returns), ``torch.autograd.grad``.  Operators that PyTorch's DTensor has a sharding rule for stay whole; others are
decomposed where PyTorch knows how.  In-place operators are made functional; a changed buffer is a result of the graph.
"""

from __future__ import annotations

import logging
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx import GraphModule, Interpreter
from torch.fx import traceback as fx_traceback
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils import _pytree as pytree

from planner.errors import DocumentInvalid
from planner.shard.torch_graph.module_paths import ModulePaths
from planner.shard.torch_graph.module_source import ModuleSource, first_line

READS_VALUES = (
    "data-dependent",
    "DataDependent",
    "get value out of a tracing tensor",
    "DynamicOutputShape",
    "dynamic shape operator",
    "Could not guard",
    "meta tensors",
)
SPEAKS_OF_SHAPES = ("shape", "size", "dimension", "reduction dim", "must match")
aten = torch.ops.aten
BETTER_IN_PARTS = (
    aten.native_batch_norm.default,
    aten.native_batch_norm_backward.default,
    aten._native_batch_norm_legit.default,
    aten._native_batch_norm_legit_functional.default,
    aten.cudnn_batch_norm.default,
    aten.cudnn_batch_norm_backward.default,
)
HERE = Path(__file__).resolve().parent
TORCH = Path(torch.__file__).resolve().parent


@dataclass(frozen=True, slots=True)
class JointStep:
    """The graph, its placeholders and its results, by what they stand for.

    ``results``: loss, ``parameter:NAME``, ``input:NAME`` (gradients) and ``buffer:NAME`` (new values), in order.
    """

    graph: GraphModule
    parameters: tuple[str, ...]
    buffers: tuple[str, ...]
    inputs: tuple[str, ...]
    results: tuple[str, ...]


def trace_joint_step(source: ModuleSource) -> JointStep:
    """Trace the step.  Raises DocumentInvalid that names the line of the module which cannot be traced."""
    parameters = {name: each for name, each in source.module.named_parameters() if each.requires_grad}
    frozen = {name: each for name, each in source.module.named_parameters() if not each.requires_grad}
    buffers = frozen | dict(source.module.named_buffers())
    results: list[str] = []
    step = _step_function(source, results)
    try:
        with _quiet_fake_tensors(), FakeTensorMode(allow_non_fake_inputs=True):
            arguments = (
                {name: _fake(each, gradient=True) for name, each in parameters.items()},
                {name: _fake(each) for name, each in buffers.items()},
                [_fake(each, gradient=each.requires_grad) for each in source.inputs],
            )
            graph = make_fx(step, decomposition_table=_decompositions(), tracing_mode="fake")(*arguments)
            if _mutates(graph):
                names = [f"buffer:{name}" for name in (*parameters, *buffers, *source.input_names)]
                graph = _functional(graph, pytree.tree_leaves(arguments), results, names)
    except DocumentInvalid:
        raise
    except Exception as error:
        raise _untraceable(error, source) from error
    return JointStep(graph, tuple(parameters), tuple(buffers), source.input_names, tuple(results))


@contextmanager
def _quiet_fake_tensors() -> Iterator[None]:
    """What stops a trace is raised and told in one line; its traceback is not logged as well."""
    log = logging.getLogger("torch._subclasses.fake_tensor")
    before, log.disabled = log.disabled, True
    try:
        yield
    finally:
        log.disabled = before


def _step_function(source: ModuleSource, results: list[str]) -> Callable[..., Any]:
    def step(parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor], inputs: list[Tensor]) -> list[Any]:
        paths = ModulePaths()
        with paths.recording(source.module):
            output = torch.func.functional_call(source.module, (dict(parameters), dict(buffers)), tuple(inputs))
            loss = scalar_loss(output)
            if not loss.requires_grad:
                raise DocumentInvalid(
                    "the loss depends on no parameter", where="--module", hint="plan a module that can be trained"
                )
            paths.follow_backward(loss)
            wanted = {f"parameter:{name}": each for name, each in parameters.items()}
            wanted |= {
                f"input:{name}": each
                for name, each in zip(source.input_names, inputs, strict=True)
                if each.requires_grad
            }
            gradients: Sequence[Tensor | None] = torch.autograd.grad(loss, list(wanted.values()), allow_unused=True)
        found = {name: each for name, each in zip(wanted, gradients, strict=True) if each is not None}
        results[:] = ["loss", *found]
        return [loss, *found.values()]

    return step


def scalar_loss(output: Any) -> Tensor:
    """The loss that is differentiated: a scalar output itself, ``.loss`` of a model's output, else the sum of all."""
    found = getattr(output, "loss", None)
    if isinstance(found, Tensor):
        return found
    leaves = [each for each in pytree.tree_leaves(_plain(output)) if isinstance(each, Tensor) and each.requires_grad]
    if not leaves:
        raise DocumentInvalid(
            "the module returns no tensor that depends on its parameters",
            where="--module",
            hint="return a loss or floating tensors",
        )
    if leaves[0].numel() == 1:
        return leaves[0].reshape(())
    total = leaves[0].float().sum()
    for each in leaves[1:]:
        total = total + each.float().sum()
    return total


def _plain(output: Any) -> Any:
    return dict(output) if isinstance(output, Mapping) else output


def _fake(tensor: Tensor, *, gradient: bool = False) -> Tensor:
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")
    return made.requires_grad_(gradient and made.dtype.is_floating_point)


def _decompositions() -> dict[Any, Callable[..., Any]]:
    """How operators are taken apart: those without a sharding rule, and those that shard better in parts.

    A bias is added after its product, so that tokens need not be flattened; batch normalisation becomes sums over the
    batch, which may be partial (its own rule keeps the batch whole).
    """
    from planner.shard.torch_graph.sharding_rules import has_rule

    table = torch._decomp.core_aten_decompositions()
    chosen = {operator: table[operator] for operator in table if not has_rule(operator)}
    return {**chosen, **torch._decomp.get_decompositions(BETTER_IN_PARTS), aten.addmm.default: _product_and_bias}


def _product_and_bias(bias: Tensor, left: Tensor, right: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    product = torch.mm(left, right)
    if alpha != 1:
        product = product * alpha
    return product + (bias if beta == 1 else beta * bias)


def _mutates(graph: GraphModule) -> bool:
    return any(
        isinstance(node.target, torch._ops.OpOverload) and node.target._schema.is_mutable for node in graph.graph.nodes
    )


def _functional(graph: GraphModule, flat: list[Tensor], results: list[str], names: list[str]) -> GraphModule:
    """The same graph without in-place operators; placeholders that it changed are further results."""

    def run(*arguments: Tensor) -> list[Any]:
        with fx_traceback.preserve_node_meta():
            return list(pytree.tree_leaves(Interpreter(graph).run(*arguments, enable_io_processing=False)))

    traced = make_fx(torch.func.functionalize(run), tracing_mode="fake")(*(each.detach() for each in flat))
    placeholders = [node for node in traced.graph.nodes if node.op == "placeholder"]
    output = next(node for node in traced.graph.nodes if node.op == "output")
    for node in list(traced.graph.nodes):
        if node.target is aten.copy_.default and node.args[0] in placeholders:
            results.append(names[placeholders.index(node.args[0])])
            output.args = ([*output.args[0], node.args[1]],)
            traced.graph.erase_node(node)
    return traced


def _untraceable(error: Exception, source: ModuleSource) -> DocumentInvalid:
    """One error for everything that stops a trace, with the user's own line."""
    line = _users_line(error)
    text = f"{type(error).__name__}: {error}"
    if any(word in text for word in READS_VALUES):
        what = "the module reads the value of a tensor to decide what it does"
        hint = "make the choice with torch.where or masks of fixed shape, or from shapes and constructor arguments"
    elif any(word in text for word in SPEAKS_OF_SHAPES):
        what, hint = f"shapes do not fit: {first_line(error)}", "check the example inputs against the module"
    else:
        what, hint = f"cannot trace: {first_line(error)}", "the module must run on fake tensors of its example inputs"
    return DocumentInvalid(f"{source.reference}: {what}", where=line or source.reference, hint=hint)


def _users_line(error: BaseException) -> str | None:
    """``file:line  code`` of the deepest frame that is neither PyTorch's nor ours."""
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        path = Path(frame.filename)
        inside = path.is_absolute() and (path.is_relative_to(TORCH) or path.is_relative_to(HERE))
        if path.suffix == ".py" and not inside and "contextlib" not in path.name:
            return f"{path}:{frame.lineno}  {frame.line}"
    return None
