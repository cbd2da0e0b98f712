"""The text of ``parallelize.py``: DTensor and FSDP2 code where the plan has names for it, else the graph runner."""

from __future__ import annotations

from planner.backends.operator_sharding.module_form import DataKind, ModuleForm, NotPerModule, module_form
from planner.shard.sharding_plan import ShardingPlan
from planner.shard.words import module_summaries

PLAN_FILE = "sharding.json"


def parallelize_script(plan: ShardingPlan) -> str:
    """The text of ``parallelize.py``."""
    try:
        form = module_form(plan)
    except NotPerModule as reason:
        return _graph_script(plan, str(reason))
    return _module_script(plan, form)


def _mesh_lines(plan: ShardingPlan) -> str:
    sizes = ", ".join(str(axis.size) for axis in plan.mesh)
    names = ", ".join(f'"{axis.name}"' for axis in plan.mesh)
    return f"MESH_SHAPE = ({sizes},)\nMESH_NAMES = ({names},)\n"


def _head(plan: ShardingPlan, title: str) -> str:
    weights = "\n".join(f"  {each.module_path}: {each.in_words}" for each in module_summaries(plan))
    return f'"""{title}\n\nWritten by Meshwright for {plan.traced.title}, plan {plan.plan_id[:12]}.\n\n{weights}\n'


def _module_script(plan: ShardingPlan, form: ModuleForm) -> str:
    imports, lines = [], []
    for axis, styles in form.tensor_styles.items():
        if styles:
            lines += [f'    parallelize_module(module, mesh["{axis}"], {{']
            lines += [f'        "{path}": {style}(),' for path, style in styles.items()]
            lines += ["    })"]
    used = sorted({style for styles in form.tensor_styles.values() for style in styles.values()})
    if used:
        imports += [f"from torch.distributed.tensor.parallel import {', '.join(used)}, parallelize_module"]
    data_import, data_lines = _data_lines(plan, form.data_axes)
    body = "\n".join([*lines, *data_lines]) or "    # Every weight is whole on every device."
    return (
        _head(plan, "Places the module's weights for a training loop of one's own.")
        + f"""
The loop gives every rank its samples of the data axes ({", ".join(form.data_axes) or "none"}), uses a loss that is
a mean over samples, and an optimizer made after ``parallelize``.  DTensor chooses the placements between the layers by
itself here; ``train.py`` runs those of the plan.
\"\"\"

from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
"""
        + "".join(f"{line}\n" for line in (*data_import, *imports))
        + f"\n{_mesh_lines(plan)}"
        + f"""

def device_mesh(device: str = "cuda") -> DeviceMesh:
    \"\"\"The mesh that the plan speaks of.\"\"\"
    return init_device_mesh(device, MESH_SHAPE, mesh_dim_names=MESH_NAMES)


def parallelize(module: nn.Module, mesh: DeviceMesh) -> nn.Module:
    \"\"\"Place the weights of ``module``, in place.\"\"\"
{body}
    return module
"""
    )


def _data_lines(plan: ShardingPlan, axes: dict[str, DataKind]) -> tuple[list[str], list[str]]:
    """Import and statements for the data axes; where there are two, the first one's ranks are replicas."""
    if not axes:
        return [], []
    mesh = "mesh[" + ", ".join(f'"{name}"' for name in axes) + "]"
    if set(axes.values()) == {"replicate"}:
        return (
            ["from torch.distributed._composable.replicate_with_fsdp import replicate"],
            [f"    replicate(module, mesh={mesh})"],
        )
    kept = "fully_shard" in axes.values()
    call = f"mesh={mesh}, reshard_after_forward={kept})"
    blocks = [path for group in plan.repeated for path in group.paths if path]
    lines = (
        [f"    for path in {blocks!r}:", f"        fully_shard(module.get_submodule(path), {call}"] if blocks else []
    )
    return ["from torch.distributed.fsdp import fully_shard"], [*lines, f"    fully_shard(module, {call}"]


def _graph_script(plan: ShardingPlan, reason: str) -> str:
    """The graph runner, for a loop of one's own."""
    return (
        _head(plan, "Runs the module's training step with the placements of the plan, operator by operator.")
        + f"""
The plan has no name in DTensor's parallel styles and FSDP: {reason}.
\"\"\"

from pathlib import Path

import torch.distributed as dist

from planner.backends.native.trainer.operator_sharding.settings import RunSettings
from planner.backends.native.trainer.operator_sharding.sharded_step import ShardedStep
from planner.backends.native.trainer.operator_sharding.traced_module import load_sharding_plan, retrace
from planner.backends.native.trainer.operator_sharding.train import build_mesh, check_world_size

{_mesh_lines(plan)}

def sharded_step(settings: RunSettings) -> ShardedStep:
    \"\"\"The step on this rank: ``sharded_step(settings).run(inputs)`` gives the loss.  Needs a process group.\"\"\"
    plan = load_sharding_plan(Path(__file__).parent / "{PLAN_FILE}")
    check_world_size(plan, dist.get_world_size())
    return ShardedStep(plan, retrace(plan, settings.seed), build_mesh(plan, settings.device), settings)
"""
    )
