"""``meshwright shard --module``: trace, solve, explain, compare; from flags to one answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.cli.output import OutputFormat, talk, write_answer
from planner.errors import DocumentInvalid, NotFound

if TYPE_CHECKING:
    from rich.console import RenderableType

    from planner.backends.launch import LauncherName
    from planner.shard.prove import ProvedStep, Solve, StepQuestion
    from planner.shard.questions import MeshOutcome
    from planner.shard.sharding_plan import ShardingPlan
    from planner.shard.torch_graph.module_source import ModuleSource

PRECISIONS = {"bfloat16": "bf16", "float16": "fp16", "float32": "fp32"}
PLAN_FILE = "sharding.json"


@dataclass(frozen=True, slots=True)
class ModuleFlags:
    """What the command line says about the module and its inputs."""

    module: str | None
    module_args: str | None
    model: str | None
    inputs: tuple[str, ...]
    inputs_function: str | None
    batch: int
    sequence_length: int
    dtype: str


@dataclass(frozen=True, slots=True)
class ShardingFlags:
    """What the command line says about devices, optimizer and the answer."""

    mesh: str
    devices: int | None
    cluster: str
    optimizer: str
    memory_margin: float
    profile: str
    time_limit_s: float
    seed: int
    fold: bool
    explain: str | None
    against: str | None
    out: Path | None
    launcher: LauncherName = "torchrun"


def shard_module(module: ModuleFlags, asked: ShardingFlags, output: OutputFormat, *, quiet: bool) -> None:
    """Answer the question of the flags on stdout."""
    from planner.shard.explain_operator import explain_operator
    from planner.shard.questions import best_mesh, sharding_plan

    source = module_source(module)
    question, meshes = step_question(source, asked)
    talk(f"{len(question.graph.nodes)} operators traced; {len(meshes)} mesh(es) to solve", quiet=quiet)
    proved, outcomes = best_mesh(question, meshes, solver(asked.seed), asked.time_limit_s)
    plan = sharding_plan(proved, source, asked.cluster)
    answer: dict[str, Any] = {"plan_id": plan.plan_id, **plan.model_dump(mode="json")}
    if len(outcomes) > 1:
        answer["meshes"] = [_outcome_row(each) for each in outcomes]
    explanation = explain_operator(proved, asked.explain) if asked.explain else None
    difference = None
    if asked.against:
        from planner.shard.compare_plans import compare_plans

        difference = compare_plans(plan, _other_plan(asked.against, proved, source, asked))
        answer["difference"] = difference.model_dump(mode="json")
    if explanation is not None:
        answer["explanation"] = explanation.model_dump(mode="json")
    if asked.out is not None:
        answer["emission"] = _write(plan, asked, asked.out)

    def tables() -> Iterator[RenderableType]:
        from planner.cli.render import sharding

        yield from sharding.plan_report(plan, outcomes)
        if explanation is not None:
            yield from sharding.explanation_report(explanation)
        if difference is not None:
            yield from sharding.difference_report(difference, ("found", asked.against or ""))

    write_answer(answer, output, tables)


def module_source(flags: ModuleFlags) -> ModuleSource:
    """The module on the meta device.  Raises DocumentInvalid or NotFound."""
    _require_torch()
    from planner.shard.torch_graph.module_source import load_module, load_transformers_module

    if (flags.module is None) == (flags.model is None):
        raise DocumentInvalid(
            "what is sharded?", where="--module", hint="give --module pkg:Class, or --model config.json, not both"
        )
    if flags.model is not None:
        return load_transformers_module(flags.model, flags.batch, flags.sequence_length, flags.inputs, flags.dtype)
    return load_module(
        flags.module or "", _arguments(flags.module_args), flags.inputs, flags.inputs_function, flags.dtype
    )


def step_question(source: ModuleSource, asked: ShardingFlags) -> tuple[StepQuestion, tuple[Any, ...]]:
    """The traced step on its devices, and the meshes to try."""
    from planner.operations.profile_choice import chosen_profile
    from planner.predict.cost.hardware import hardware_of
    from planner.shard.mesh_shapes import factorisations, read_mesh
    from planner.shard.prove import StepQuestion
    from planner.shard.torch_graph.read_graph import operator_graph, traced_step
    from planner.shard.training_state import training_state
    from profiles.catalogue import load_cluster

    if asked.mesh == "auto" and asked.devices is None:
        raise DocumentInvalid("a mesh of how many devices?", where="--mesh auto", hint="add --devices N")
    meshes = factorisations(asked.devices or 1) if asked.mesh == "auto" else (read_mesh(asked.mesh),)
    if not 0 <= asked.memory_margin < 1:
        raise DocumentInvalid(
            f"the memory margin is a part of the memory, not {asked.memory_margin}",
            where="--memory-margin",
            hint="give a number from 0 up to, not including, 1",
        )
    if asked.devices is not None and any(mesh.num_devices != asked.devices for mesh in meshes):
        raise DocumentInvalid(
            f"{asked.mesh} is not {asked.devices} devices", where="--mesh", hint="leave --devices out, or use auto"
        )
    dtype = str(source.dtype).removeprefix("torch.")
    if dtype not in PRECISIONS:
        raise DocumentInvalid(
            f"no device rates for {dtype}", where="--dtype", hint=f"choose among {', '.join(sorted(PRECISIONS))}"
        )
    cluster = load_cluster(asked.cluster, meshes[0].num_devices)
    profile = chosen_profile(asked.profile, cluster.pools[0].device)
    hardware = hardware_of(cluster, PRECISIONS[dtype], profile)
    state = training_state(asked.optimizer)
    divisors = sorted({divisor for mesh in meshes for divisor in mesh.divisors})
    graph = operator_graph(traced_step(source), divisors)
    question = StepQuestion(graph, meshes[0], hardware, PRECISIONS[dtype], state, asked.memory_margin, asked.fold)
    return question, meshes


def solver(seed: int) -> Solve:
    """The selection solver with a seed."""
    from solver.selection.answer import Answer
    from solver.selection.problem import SelectionProblem
    from solver.selection.solve import solve

    def run(problem: SelectionProblem, time_limit_s: float) -> Answer:
        return solve(problem, time_limit_s=time_limit_s, seed=seed)

    return run


def _other_plan(against: str, proved: ProvedStep, source: ModuleSource, asked: ShardingFlags) -> ShardingPlan:
    """A baseline on the same mesh, or a saved plan."""
    from planner.shard.baselines import BASELINES, prove_baseline
    from planner.shard.questions import sharding_plan

    name = next((each for each in BASELINES if each == against), None)
    if name is not None:
        baseline = prove_baseline(name, proved.question, solver(asked.seed), asked.time_limit_s)
        return sharding_plan(baseline, source, asked.cluster)
    return saved_plan(Path(against))


def saved_plan(path: Path) -> ShardingPlan:
    """A plan that ``--out`` wrote: the file or its folder.  Raises NotFound or DocumentInvalid."""
    from planner.shard.read_sharding_plan import read_sharding_plan

    file = path / PLAN_FILE if path.is_dir() else path
    try:
        return read_sharding_plan(file.read_text("utf-8"), str(file))
    except FileNotFoundError as error:
        raise NotFound(
            f"no sharding plan at {file}", where="--against", hint="give megatron, fsdp, or a saved plan"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise DocumentInvalid(f"cannot be read: {error}", where=str(file), hint="give a file of JSON") from error


def _write(plan: ShardingPlan, asked: ShardingFlags, folder: Path) -> dict[str, Any]:
    """The folder that runs the plan; returns what was written as plain data."""
    from planner.backends.operator_sharding.emit import emit_sharding, write_sharding
    from profiles.catalogue import load_cluster

    devices = prod(axis.size for axis in plan.mesh)
    emission = emit_sharding(plan, load_cluster(asked.cluster, devices), asked.launcher)
    where = write_sharding(emission, folder)
    return {
        "directory": str(where),
        "launcher": emission.launcher,
        "launch_command": emission.launch.command,
        "files": sorted(emission.files),
    }


def _arguments(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    try:
        found = json.loads(text)
    except ValueError as error:
        raise DocumentInvalid(f"no JSON: {error}", where="--module-args", hint='write {"hidden_size": 1024}') from error
    if not isinstance(found, dict):
        raise DocumentInvalid("not an object", where="--module-args", hint='write {"hidden_size": 1024}')
    return found


def _outcome_row(outcome: MeshOutcome) -> dict[str, Any]:
    proved = outcome.proved
    return {
        "mesh": outcome.mesh.text,
        "total_s": None if proved is None else proved.bill.total_ps / 1e12,
        "bound_s": None if proved is None else proved.bound_ps / 1e12,
        "refusal": outcome.refusal,
    }


def _require_torch() -> None:
    from importlib.util import find_spec

    if find_spec("torch") is None:
        raise NotFound(
            "tracing a module needs PyTorch", where="--module", hint="install it: pip install 'meshwright[torch]'"
        )
