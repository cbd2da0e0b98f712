"""The training run that a job file of torchtitan describes: model, work, strategy and what became of every setting.

Defaults are torchtitan's (0.2.2 ``config/job_config.py``, 0.3.0 ``config/configs.py``).  ``data_parallel_shard_degree``
-1 is what the number of devices leaves.  FSDP2 wraps every model: parameters are gathered again for the backward pass
(ZeRO 3) by default without a pipeline and kept with one (``degrees``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from planner.backends.rules.settings import flat_settings, overridden
from planner.backends.torchtitan.degrees import SCHEDULES, SELECTIVE_MODULES, expert_tensor_degree
from planner.backends.torchtitan.flavors import flavor_model, flavors
from planner.backends.torchtitan.job_file import Called, Open, Sections, module_sections, toml_sections
from planner.backends.torchtitan.job_keys import list_of
from planner.errors import DocumentInvalid
from planner.model.megatron_args import LaunchJob
from planner.model.megatron_unmodelled import ArgumentLists
from planner.model.megatron_vocabulary import Vocabulary
from planner.strategy.schedules import ScheduleName

_ONE_CHUNK = frozenset({"1f1b", "gpipe"})
_FLOAT8 = frozenset({"float8", "quantize.linear.float8", "Float8LinearConverter"})
_NAMES: dict[str, ScheduleName] = {theirs.lower(): ours for ours, theirs in SCHEDULES.items()}


def job_of_toml(text: str, where: str, words: Sequence[str] = (), devices: int | None = None) -> LaunchJob:
    """The run of a job file of 0.2.2, settings behind it laid over.  Raises DocumentInvalid."""
    sections = toml_sections(text, where)
    others = overridden(sections, words, where)
    _refuse(others, (), where)
    return _job(sections, where, devices, "0.2.2")


def job_of_module(
    text: str, where: str, words: Sequence[str] = (), devices: int | None = None, family: str = ""
) -> LaunchJob:
    """The run of a config module of 0.3.0; ``--config NAME`` among the words names the function.

    ``--module`` names the family, as on torchtitan's command line; else ``family`` or the function's name does.
    Raises DocumentInvalid.
    """
    settings: Sections = {}
    others = overridden(settings, words, where)
    _refuse(others, ("config", "module"), where)
    if "config" not in others:
        raise DocumentInvalid("which of its functions?", where=where, hint="say it: -- --config NAME")
    sections = module_sections(text, others["config"], where)
    for name, values in settings.items():
        merged = sections.get(name)
        sections[name] = {**merged, **values} if isinstance(merged, dict) else values
    named = (others.get("module", "").split(".")[-1], family, *(each for each in flavors()))
    known = [each for each in named if each in flavors()]
    guessed = [each for each in known if others["config"].startswith(each)] or known[:1]
    sections["model"]["name"] = known[0] if named[0] in flavors() or family in flavors() else guessed[0]
    return _job(sections, where, devices, "0.3.0")


def _refuse(others: Mapping[str, str], known: Sequence[str], where: str) -> None:
    for name in others:
        if name not in known:
            raise DocumentInvalid(f"--{name} is no setting of a job", where=where, hint="--section.key VALUE")


@dataclass(slots=True)
class _Reader:
    """Typed access to settings; what is missing takes torchtitan's default."""

    sections: Sections
    where: str
    told: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)

    def value(self, key: str, default: Any) -> Any:
        """Raises DocumentInvalid for a value that the text does not decide."""
        section, _, name = key.partition(".")
        values = self.sections.get(section, {})
        found = values.get(name, default) if isinstance(values, dict) else values
        if isinstance(found, Called):
            found = Open(f"{found.name}(...)", found.line)
        if isinstance(found, Open):
            what = f"{key} is {found.text!r} (line {found.line}), which the text does not decide"
            raise DocumentInvalid(what, where=self.where, hint=f"say it: -- --{key} VALUE")
        return found

    def number(self, key: str, default: int, least: int = 1) -> int:
        """Raises DocumentInvalid for anything but a whole number."""
        found = self.value(key, default)
        if isinstance(found, bool) or not isinstance(found, int) or (found < least and found != -1):
            raise DocumentInvalid(f"{key} is {found!r}, not a whole number", where=self.where, hint="correct it")
        return found

    def flag(self, key: str, default: bool = False) -> bool:
        """Raises DocumentInvalid for anything but true or false."""
        found = self.value(key, default)
        if not isinstance(found, bool):
            raise DocumentInvalid(f"{key} is {found!r}, neither true nor false", where=self.where, hint="correct it")
        return found


def _job(sections: Sections, where: str, devices: int | None, version: str) -> LaunchJob:
    reader = _Reader(sections, where)
    family, flavor = reader.value("model.name", "llama3"), reader.value("model.flavor", "debugmodel")
    model = flavor_model(str(family), str(flavor), where)
    degrees, world = _degrees(reader, devices)
    strategy = {**degrees, **_pipeline(reader, degrees["pp"])}
    chunk_layers = _chunk_layers(reader, model.num_layers, degrees["pp"], strategy["vpp"])
    workload = _batch(reader, strategy)
    strategy |= _sharding(reader, strategy) | _switches(reader, strategy, version)
    if model.has_experts:
        tp, ep = strategy["tp"], strategy["ep"]
        declared = reader.number("parallelism.expert_tensor_parallel_degree", 1)
        strategy["etp"] = expert_tensor_degree(tp, ep, experts=True) if ep == 1 else declared
    strategy |= _recompute(reader, version)
    _compiled(reader)
    return LaunchJob(
        model,
        workload,
        strategy,
        world,
        chunk_layers=chunk_layers,
        arguments=_lists(reader),
        vocabulary=Vocabulary(model.vocab_size, f"{model.vocab_size:,} of torchtitan's {family} {flavor}"),
        assumed=tuple(reader.told),
        launches=1,
        software="torchtitan" if version == "0.3.0" else f"torchtitan=={version}",
    )


def _degrees(reader: _Reader, devices: int | None) -> tuple[dict[str, Any], int]:
    def degree(name: str) -> int:
        return reader.number(f"parallelism.{name}_parallel_degree", 1)

    tp, cp, pp, ep = degree("tensor"), degree("context"), degree("pipeline"), degree("expert")
    replicate = reader.number("parallelism.data_parallel_replicate_degree", 1)
    shard = reader.number("parallelism.data_parallel_shard_degree", -1)
    block = tp * cp * pp * replicate
    if shard == -1:
        if devices is None:
            raise DocumentInvalid(
                "data_parallel_shard_degree is -1: what the number of devices leaves",
                where=reader.where,
                hint="say how many: --devices N",
            )
        shard, rest = divmod(devices, block)
        if rest or not shard:
            what = f"tp * cp * pp * dp_replicate = {block} does not divide the {devices} devices"
            raise DocumentInvalid(what, where=reader.where, hint="give --devices a multiple of it")
        reader.told.append(f"data_parallel_shard_degree={shard}: what {devices:,} devices leave")
    elif devices not in (None, block * shard):
        what = f"its degrees are for {block * shard} devices, not {devices}"
        raise DocumentInvalid(what, where=reader.where, hint=f"--devices {block * shard}, or other degrees")
    found = {"tp": tp, "cp": cp, "pp": pp, "ep": ep, "dp_replicate": replicate, "dp_shard": shard}
    return found | {"cp_kind": "ring" if cp > 1 else "none"}, block * shard


def _pipeline(reader: _Reader, pp: int) -> dict[str, Any]:
    if pp == 1:
        return {"vpp": 1, "schedule": "1f1b"}
    written = str(reader.value("parallelism.pipeline_parallel_schedule", "1F1B"))
    name = _NAMES.get(written.lower())
    if name is None:
        hint = f"known are {', '.join(SCHEDULES.values())}"
        raise DocumentInvalid(f"the schedule {written!r} is not known", where=reader.where, hint=hint)
    parts = reader.value("parallelism.module_fqns_per_model_part", None)
    return {"vpp": len(parts) // pp if parts else 1 if name in _ONE_CHUNK else 2, "schedule": name}


def _chunk_layers(reader: _Reader, layers: int, pp: int, vpp: int) -> tuple[int, ...] | None:
    """Layers of every chunk: as listed, or dealt with a layer's place for the embedding and one for the head.

    Source: 0.2.2 ``distributed/pipeline_parallel.py``, ``generate_llm_fqn_per_model_part``.
    """
    if pp == 1:
        return None
    parts = reader.value("parallelism.module_fqns_per_model_part", None)
    if parts:
        counts = [sum(str(name).startswith("layers.") for name in part) for part in parts]
        if len(parts) % pp or sum(counts) != layers:
            what = f"module_fqns_per_model_part places {sum(counts)} layers of {layers} in {len(parts)} parts"
            raise DocumentInvalid(what, where=reader.where, hint="correct it")
        return tuple(counts)
    first = reader.number("parallelism.pipeline_parallel_first_stage_less_layers", 1, least=0)
    last = reader.number("parallelism.pipeline_parallel_last_stage_less_layers", 1, least=0)
    each = reader.value("parallelism.pipeline_parallel_layers_per_stage", None)
    count = pp * vpp
    if each is not None and -(-(layers + first + last) // max(int(each), 1)) != count:
        what = f"pipeline_parallel_layers_per_stage {each} makes no {count} parts of {layers} layers"
        raise DocumentInvalid(what, where=reader.where, hint="leave it out, or list the parts")
    even, more = divmod(layers + first + last, count)
    counts = [even + (chunk < more) for chunk in range(count)]
    counts[0] -= first
    counts[-1] -= last
    if min(counts) < 0:
        raise DocumentInvalid(f"{layers} layers are too few for {count} parts", where=reader.where, hint="lower pp")
    return tuple(counts)


def _batch(reader: _Reader, strategy: dict[str, Any]) -> dict[str, Any]:
    """Fills ``micro_batch_size`` and ``num_microbatches`` in; gives the workload."""
    length = reader.number("training.seq_len", reader.number("training.max_context_length", 2048))
    tokens = reader.number("training.num_tokens_per_microbatch_per_dp_rank", 0, least=0)
    local = tokens // length if tokens else reader.number("training.local_batch_size", 8)
    replicas = strategy["dp_replicate"] * strategy["dp_shard"]
    size = reader.number("parallelism.pipeline_parallel_microbatch_size", 1) if strategy["pp"] > 1 else local
    samples = reader.number("training.global_batch_size", -1)
    if samples == -1:
        samples = local * replicas
        reader.told.append(f"global batch {samples:,}: local batch {local} on {replicas} replicas")
    rounds, rest = divmod(samples, max(local, 1) * replicas)
    if local < 1 or rest or not rounds or local % size:
        what = f"global batch {samples}, local batch {local} and micro-batch {size} do not fit {replicas} replicas"
        raise DocumentInvalid(what, where=reader.where, hint="correct it")
    if strategy["pp"] > 1 and rounds > 1:
        reader.missed.append(f"{rounds} rounds of the pipeline a step (predicted as one without a drain between)")
    strategy |= {"micro_batch_size": size, "num_microbatches": samples // (size * replicas)}
    converters = set(_names(reader.value("model.converters", None)))
    precision = "bf16"
    if converters & _FLOAT8:
        precision = "fp8"
    elif reader.value("training.mixed_precision_param", "bfloat16") != "bfloat16":
        reader.missed.append("training.mixed_precision_param = float32 (bf16 is predicted)")
    reader.missed += [f"model.converters: {name}" for name in sorted(converters - _FLOAT8)]
    if str(reader.value("optimizer.name", "AdamW")) not in ("AdamW", "Adam"):
        reader.missed.append(f"optimizer.name = {reader.value('optimizer.name', '')} (taken as adam)")
    return {"global_batch_size": samples, "sequence_length": length, "precision": precision, "optimizer": "adam"}


def _sharding(reader: _Reader, strategy: Mapping[str, Any]) -> dict[str, Any]:
    policy = reader.value("parallelism.fsdp_reshard_after_forward", "default")
    if strategy["dp_shard"] * strategy["cp"] == 1:
        return {"zero_stage": 0, "dp_replicate": 1, "dp_shard": strategy["dp_replicate"]}
    always = policy == "always" or (policy == "default" and strategy["pp"] == 1)
    return {"zero_stage": 3 if always else 1 if strategy["pp"] > 1 else 2}


def _switches(reader: _Reader, strategy: Mapping[str, Any], version: str) -> dict[str, Any]:
    """What FSDP2 and torch's pipelines do by themselves, and tensor parallelism's own switches."""
    asynchronous = "compile" if version == "0.3.0" else "parallelism"
    sequence = version != "0.3.0" or reader.flag("parallelism.enable_sequence_parallel", default=True)
    return {
        "sp": strategy["tp"] > 1 and sequence,
        "overlap_grad_reduce": strategy["pp"] == 1,
        "overlap_param_gather": True,
        "overlap_tp": reader.flag(f"{asynchronous}.enable_async_tensor_parallel"),
    }


def _recompute(reader: _Reader, version: str) -> dict[str, Any]:
    mode = reader.value("activation_checkpoint.mode", "selective")
    option = "op" if version == "0.3.0" else str(reader.value("activation_checkpoint.selective_ac_option", "2"))
    if mode in ("none", "full"):
        return {"recompute": mode}
    if mode == "selective" and option == "op":
        return {"recompute": "selective", "recompute_modules": SELECTIVE_MODULES}
    if mode == "selective" and option == "1":
        return {"recompute": "full"}
    if mode == "selective" and option.isdecimal():
        # No plan of this back-end has layers of both kinds.
        reader.missed.append(f"every {option}. layer is recomputed whole (recompute by operation is predicted)")
        return {"recompute": "selective", "recompute_modules": SELECTIVE_MODULES}
    reader.missed.append(f"activation_checkpoint.mode = {mode} (no recompute is predicted)")
    return {"recompute": "none"}


def _names(value: Any) -> list[str]:
    """A list of names; options of the command line join them by commas (torchtitan 0.2.2 config/manager.py:228)."""
    return value.split(",") if isinstance(value, str) else [str(name) for name in value or ()]


def _compiled(reader: _Reader) -> None:
    components = _names(reader.value("compile.components", ["model", "loss"]))
    if not reader.flag("compile.enable") or "model" not in components:
        reader.missed.append("layers that are not compiled (compiled ones are predicted)")


def _lists(reader: _Reader) -> ArgumentLists:
    found: dict[str, list[str]] = {"used": [], "no_influence": [], "not_modelled": list(reader.missed), "unknown": []}
    quantized = bool(_names(reader.value("model.converters", None)))
    for key, value in flat_settings(reader.sections):
        if key.startswith("quantize.") and not quantized:  # they are settings of converters
            found["no_influence"].append(key)
            continue
        shown = value.text if isinstance(value, Open) else value.name if isinstance(value, Called) else value
        found[list_of(key, value)].append(f"{key} = {shown}" if not isinstance(shown, (dict, list)) else key)
    return ArgumentLists(**{name: tuple(rows) for name, rows in found.items()})
