"""Launch scripts that start torchtitan, MaxText, DeepSpeed or Accelerate: the configuration file that they name.

The script's words say which file, and what they lay over it; the file is read as if it had been given itself.  Of a
trainer of Hugging Face's family the arguments of its batch, length and gradient checkpointing are read
(transformers ``TrainingArguments``); those that change no step are told as such, and all others as unknown.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from planner.errors import DocumentInvalid
from planner.model.megatron_flags import MegatronFlags
from planner.model.megatron_strategy import launched_devices
from planner.model.megatron_unmodelled import ArgumentLists
from planner.model.shell.scope import UNKNOWN
from planner.operations.deepspeed_chat import ARGUMENTS, configuration
from planner.operations.trainer_adapters import adapters_of
from profiles.validation import pointer_to

if TYPE_CHECKING:
    from planner.model.megatron_args import LaunchJob
    from planner.model.spec import ModelSpec

_TITAN = re.compile(r"torchtitan[./]train(?:\.py)?\Z|(?:.*/)?run_train\.sh\Z")
_MAXTEXT = re.compile(r"(?:.*[./])?max_?text\b.*[./](?:pre_?train|train)(?:\.py)?\Z", re.IGNORECASE)
_SETTING = re.compile(r"--[a-z_]+\.[\w.-]+(?:=.*)?\Z")
_LENGTHS = ("max-seq-length", "model-max-length", "max-seq-len", "block-size", "cutoff-len", "max-length")
_MODELS = ("model-name-or-path", "model-path", "pretrained-model-name-or-path", "model-id")
_CHECKPOINTING = ("gradient-checkpointing", "use-gradient-checkpointing", "enable-gradient-checkpointing")
_USED = frozenset({
    "per-device-train-batch-size", "gradient-accumulation-steps", "bf16", "fp16",
    "deepspeed-config", *ARGUMENTS, *_LENGTHS, *_MODELS, *_CHECKPOINTING,
})  # fmt: skip
_HARMLESS = re.compile(
    r"(?:output-dir|data|dataset|train-file|validation|learning-rate|lr-|warmup|num-warmup|weight-decay|adam-|num-train-epochs"
    r"|max-steps|logging|log-|save|eval|report-to|run-name|seed|do-|overwrite|per-device-eval|max-grad-norm|ddp-timeout"
    r"|tokenizer|chat-template|model-revision|lazy-preprocess|preprocessing|cache-dir|hub-|push-to-hub|resume|remove-unused|load-best|local-rank|lr$)"
)


@dataclass(frozen=True, slots=True)
class NamedFile:
    """``file``: as the script writes it.  ``words``: laid over it.  ``trainer``: arguments of the trainer itself.

    ``elsewhere``: where the trainer looks next for a file that is not there.
    """

    software: str
    file: str
    words: tuple[str, ...] = ()
    trainer: MegatronFlags | None = None
    devices: int | None = None
    elsewhere: tuple[str, ...] = ()
    own_text: str = ""
    """Of a file that the trainer makes of its own arguments."""
    open_devices: str = ""
    """Number of processes as the launcher's argument says it, where the text does not decide it."""

    def text(self, opened: Callable[[str], str | None]) -> tuple[NamedFile, str | None]:
        """The first of its places that has a text; itself and None where none has."""
        if self.own_text:
            return self, self.own_text
        for place in (self.file, *self.elsewhere):
            text = opened(place)
            if text is not None:
                return replace(self, file=place, elsewhere=()), text
        return self, None


def is_maxtext(words: Sequence[str]) -> bool:
    """Whether a launch starts MaxText, whose YAML file says the run itself."""
    return any(_MAXTEXT.match(word) for word in words)


def named_file(words: Sequence[str], where: str) -> NamedFile | None:
    """The configuration file that a launch names; None for a launch of another kind."""
    flags = MegatronFlags(words, where)
    devices = launched_devices(flags)
    if any(_TITAN.search(word) for word in words):
        return _titan(flags, words, devices, where)
    place = next((place for place, word in enumerate(words) if _MAXTEXT.match(word)), None)
    if place is not None:
        own = words[place + 1 :]
        file = next((word for word in own if word.endswith((".yml", ".yaml")) and "=" not in word), "")
        file = file.removeprefix(f"{UNKNOWN}$PWD{UNKNOWN}/")  # where the command runs
        settings = tuple(word for word in own if "=" in word and not word.startswith("-"))
        return NamedFile("maxtext", file, settings, devices=devices) if file else None
    if "num-layers" in flags.names or "hidden-size" in flags.names:
        return None  # Megatron-DeepSpeed: its own arguments say the model
    trainer = _behind_program(words, where)
    program = next((place for place, word in enumerate(words) if word.endswith(".py")), 0)
    starts = {word.rpartition("/")[2] for word in words[: max(4, program)]}
    if "accelerate" in starts and "config-file" in flags.names:
        both = ("num_processes", "mixed_precision")
        said = {name: next(iter(flags.words(name.replace("_", "-"))), UNKNOWN) for name in both}
        over = [f"--{name}={value}" for name, value in said.items() if UNKNOWN not in value]
        count = said["num_processes"].replace(UNKNOWN, "")
        left = count if UNKNOWN in said["num_processes"] else ""
        return NamedFile("accelerate", flags.values_of("config-file")[0], tuple(over), trainer, open_devices=left)
    config = next((value for name in ("deepspeed-config", "deepspeed") for value in trainer.values_of(name)[:1]), "")
    devices = devices or _deepspeed_devices(flags)
    if config:
        return NamedFile("deepspeed", config, (), trainer, devices)
    built = configuration(trainer) if "deepspeed" in starts else None
    return None if built is None else NamedFile("deepspeed", where, (), trainer, devices, own_text=built)


def followed_job(
    found: NamedFile, text: str | None, where: str, devices: int | None, model: Callable[[str | None], ModelSpec | None]
) -> LaunchJob:
    """The run of a launch with its file's text; ``model``: gives a model for the trainer's name, None for unknown ones.

    Raises DocumentInvalid, FindingsInvalid.
    """
    if found.software == "maxtext":
        text = _own_file(found.file, text)
    if text is None:
        what = f"the script starts {found.software} with {found.file}, which is not there"
        hint = "send it with the script: files" if where == "/text" else "put it where the script looks for it"
        hint += f", or as {' or '.join(found.elsewhere)}" if found.elsewhere else ""
        raise DocumentInvalid(what, where=where, hint=hint)
    if where == "/text" and not found.own_text:
        found = replace(found, file=pointer_to("files", found.file))
    count = devices or found.devices
    if found.software == "torchtitan":
        from planner.backends.torchtitan.job import job_of_module, job_of_toml

        job_of = job_of_module if found.file.endswith(".py") else job_of_toml
        return job_of(text, found.file, found.words, count)
    if found.software == "maxtext":
        from planner.backends.maxtext.job import job_of_yaml as maxtext_job

        return maxtext_job(text, found.file, found.words, count)
    names = [value for flag in _MODELS for value in found.trainer.values_of(flag)] if found.trainer else []
    name = next(iter(names), None)
    spec = model(name)
    if spec is None:
        what = (
            "the script does not say the model's sizes"
            if name is None
            else f"it trains {name}, whose sizes are not here"
        )
        raise DocumentInvalid(what, where=where, hint="name it: --model config.json, or a built-in name")
    return _trainer_job(found, text, spec, count)


def _own_file(file: str, text: str | None) -> str | None:
    """MaxText's own files: the defaults of its release, and one of its models."""
    folder, _, name = file.rpartition("/")
    if name in ("base.yml", "base.yaml"):
        return "base_config: base.yml\n"
    if text is None and folder.endswith("configs/models"):
        return f"base_config: base.yml\nmodel_name: {name.rpartition('.')[0].replace('_', '-')}\n"
    return text


def _trainer_job(found: NamedFile, text: str, spec: ModelSpec, devices: int | None) -> LaunchJob:
    from planner.backends.accelerate.job import job_of_yaml
    from planner.backends.deepspeed.job import job_of_config

    if found.software == "accelerate":
        job = job_of_yaml(text, found.file, spec, found.words, devices)
    else:
        job = job_of_config(text, found.file, spec, _filled(found, text), devices)
    return job if found.trainer is None else _with_trainer(job, found.trainer)


def _filled(found: NamedFile, text: str) -> tuple[str, ...]:
    """What the trainer fills in where DeepSpeed's file says ``auto``."""
    trainer, words = found.trainer, list[str]()
    if trainer is None:
        return found.words
    pairs = (
        ("train_micro_batch_size_per_gpu", "per-device-train-batch-size"),
        ("gradient_accumulation_steps", "gradient-accumulation-steps"),
    )
    for key, name in pairs:
        values = trainer.values_of(name)
        if values and re.search(rf'"{key}"\s*:\s*"auto"', text):
            words.append(f"--{key}={values[0]}")
    for kind in ("bf16", "fp16"):
        if re.search(rf'"{kind}"\s*:\s*\{{[^}}]*"enabled"\s*:\s*"auto"', text):
            words.append(f"--{kind}.enabled={str(_on(trainer, kind)).lower()}")
    return (*found.words, *words)


def _with_trainer(job: LaunchJob, trainer: MegatronFlags) -> LaunchJob:
    """The job with what the trainer's own arguments say, and those in their lists."""
    strategy, workload, told = dict(job.strategy), dict(job.workload), list(job.assumed)
    each = trainer.integer("per-device-train-batch-size")
    rounds = trainer.integer("gradient-accumulation-steps") or 1
    block = strategy.get("tp", 1) * strategy.get("cp", 1) * strategy.get("pp", 1)
    if each is not None and "global_batch_size" not in workload and job.num_devices and not job.num_devices % block:
        strategy["micro_batch_size"] = each
        workload["global_batch_size"] = each * rounds * job.num_devices // block
        told.append(f"global batch {workload['global_batch_size']:,}: {each} a replica, {rounds} rounds")
    length = next((value for name in _LENGTHS if (value := trainer.integer(name)) is not None), None)
    if length is not None:
        workload.setdefault("sequence_length", length)
    if any(_on(trainer, name) for name in _CHECKPOINTING):
        strategy.setdefault("recompute", "full")
        told = [line for line in told if not line.startswith("recompute: ")]
    adapters = adapters_of(trainer)
    if adapters.training is not None:
        workload["training"] = adapters.training
    told += adapters.told
    if {"global_batch_size", "sequence_length"} <= workload.keys():
        told = [line for line in told if not line.startswith("batch and sequence length: ")]
    trainer.finish()
    missed = [*job.arguments.not_modelled]
    lists = {"used": [*job.arguments.used], "no_influence": [*job.arguments.no_influence]}
    unknown = [*job.arguments.unknown]
    for name in trainer.names:
        used = name in _USED or name in adapters.used
        rows = lists["used"] if used else lists["no_influence"] if _HARMLESS.match(name) else unknown
        rows = missed if name in adapters.missed else rows
        told_of = " ".join(" ".join((f"--{name}", *trainer.values_of(name))).split())[:120]
        rows.append(f"{told_of} (no adapters are predicted: --training says them)" if rows is missed else told_of)
    arguments = ArgumentLists(
        tuple(sorted(lists["used"])),
        tuple(sorted(lists["no_influence"])),
        tuple(missed),
        tuple(sorted(unknown)),
    )
    decided = "global_batch_size" in workload
    undecided = tuple(each for each in job.undecided if not (decided and each.what == "train_batch_size is auto"))
    changed: dict[str, Any] = {
        "strategy": strategy, "workload": workload, "assumed": tuple(told), "undecided": undecided
    }  # fmt: skip
    return replace(job, arguments=arguments, **changed)


def _on(flags: MegatronFlags, name: str) -> bool:
    return name in flags.names and flags.values_of(name)[:1] not in (["False"], ["false"], ["0"])


def _titan(flags: MegatronFlags, words: Sequence[str], devices: int | None, where: str) -> NamedFile:
    file, elsewhere, own = next(iter(flags.values_of("job.config-file")), ""), list[str](), list[str]()
    module, config = (next(iter(flags.values_of(name)), "") for name in ("module", "config"))
    if not file and module and config:
        (file, *elsewhere), own = _module_places(module), [f"--module={module}", f"--config={config}"]
    if not file:
        what = "the script starts torchtitan and its text does not say the job file"
        hint = "give the file itself: --from FILE, with -- --config NAME for a config module"
        raise DocumentInvalid(what, where=where, hint=hint)
    place = 0
    while place < len(words):
        if _SETTING.match(words[place]) and not words[place].startswith("--job.config"):
            own.append(words[place])
            if "=" not in words[place] and place + 1 < len(words) and not words[place + 1].startswith("--"):
                place += 1
                own.append(words[place])
        place += 1
    return NamedFile("torchtitan", file, tuple(own), devices=devices, elsewhere=tuple(elsewhere))


def _module_places(module: str) -> tuple[str, ...]:
    """Files in which ``--config`` names a function (torchtitan 0.3.0 config/manager.py:104-141).

    A short name stands below torchtitan's models or experiments; any other is looked for as a package with a
    ``config_registry``, then as a module.
    """
    path = module.replace(".", "/")
    short = tuple(f"torchtitan/{folder}/{path}/config_registry.py" for folder in ("models", "experiments"))
    return (*short, f"{path}/config_registry.py", f"{path}.py")


def _behind_program(words: Sequence[str], where: str) -> MegatronFlags:
    """The words behind the Python program that a launcher starts."""
    starts = [place for place, word in enumerate(words) if word.endswith(".py") and not word.startswith("-")]
    return MegatronFlags(words[starts[0] + 1 :] if starts else (), where)


def _deepspeed_devices(flags: MegatronFlags) -> int | None:
    each, nodes = flags.decided_integer("num-gpus"), flags.decided_integer("num-nodes") or 1
    return each * nodes if each else None
