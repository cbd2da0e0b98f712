"""The meaning of placements, module by module: column-parallel, row-parallel, gathered weights."""

from __future__ import annotations

from dataclasses import dataclass

from planner.shard.placement import layout_of, short
from planner.shard.sharding_plan import OperatorPlacement, ParameterPlacement, ShardingPlan


@dataclass(frozen=True, slots=True)
class ModuleSummary:
    """One module that has weights: how they are used over each axis, and the raw placements."""

    module_path: str
    in_words: str
    weight: str
    state: str
    output: str
    copies: int


def module_summaries(plan: ShardingPlan) -> list[ModuleSummary]:
    """One row for every module with a trained weight, copies of repeated blocks once."""
    hidden = {path for group in plan.repeated for path in group.paths[:-1]}
    copies = {group.paths[-1]: len(group.paths) for group in plan.repeated}
    rows = []
    for parameter in plan.parameters:
        owner = parameter.parameter.rpartition(".")[0]
        if parameter.kind != "parameter" or any(_inside(parameter.parameter, path) for path in hidden):
            continue
        reader = _first_reader(plan, parameter.name)
        count = next((number for path, number in copies.items() if _inside(parameter.parameter, path)), 1)
        rows.append(
            ModuleSummary(
                module_path=parameter.parameter if owner == "" else f"{owner} ({parameter.parameter.split('.')[-1]})",
                in_words=_words(plan, parameter, reader),
                weight=short(layout_of(parameter.placements)),
                state=short(layout_of(parameter.state_placements)),
                output="" if reader is None or reader.outputs[0] is None else short(layout_of(reader.outputs[0])),
                copies=count,
            )
        )
    return rows


def _inside(name: str, path: str) -> bool:
    return name == path or name.startswith(f"{path}.")


def _first_reader(plan: ShardingPlan, producer: str) -> OperatorPlacement | None:
    for operator in plan.operators:
        if any(edge.producer == producer for edge in operator.inputs):
            if operator.target == "aten.alias.default":
                return _first_reader(plan, operator.name)
            return operator
    return None


def _words(plan: ShardingPlan, parameter: ParameterPlacement, reader: OperatorPlacement | None) -> str:
    """What happens over each axis, axes with the same word joined."""
    if reader is None:
        return "unused"
    names = (parameter.name, *_relays(plan, parameter))
    own = next((each for each in reader.inputs if each.producer in names), reader.inputs[0])
    others = [each for each in reader.inputs if each is not own]
    phrases: dict[str, list[str]] = {}
    for axis, mesh_axis in enumerate(plan.mesh):
        output = reader.outputs[0][axis] if reader.outputs[0] is not None else "replicate"
        word = _word(own.needed[axis], [each.needed[axis] for each in others], output, len(parameter.shape))
        if parameter.placements[axis] != "replicate" and own.needed[axis] == "replicate":
            word += ", weights gathered"
        phrases.setdefault(word, []).append(mesh_axis.name)
    return "; ".join(f"{word} ({', '.join(axes)})" for word, axes in phrases.items())


def _relays(plan: ShardingPlan, parameter: ParameterPlacement) -> tuple[str, ...]:
    return tuple(
        operator.name
        for operator in plan.operators
        if operator.target == "aten.alias.default" and operator.inputs[0].producer == parameter.name
    )


def _word(weight: str, others: list[str], output: str, dims: int) -> str:
    if output.startswith("partial") and weight.startswith("shard"):
        return "row-parallel"
    if weight == "shard:0" and dims > 2:
        return "experts or channels split"
    if weight.startswith("shard"):
        return "column-parallel" if dims > 1 else "features split"
    read = next((each for each in others if each != "replicate"), output)
    if read == "shard:0":
        return "data-parallel"
    if read == "shard:1":
        return "sequence-parallel"
    if read.startswith("shard"):
        return f"activations split on dim {read.partition(':')[2]}"
    return "replicated" if read == "replicate" else "partial sums"
