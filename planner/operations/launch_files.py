"""A launch script or job file of a back-end as the question: it says model, workload, strategy and devices.

So ``meshwright estimate --from train.sh --cluster dgx-h100`` predicts the run that a person has today, and ``plan``
with the same words finds a better one.  Flags always win over the script.  What the script leaves open or what was
ignored is told with every answer (``script_facts``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import DocumentInvalid
from planner.operations.recipe_launches import bridge_file, bridge_launch, nemo_file, nemo_launch
from planner.operations.said_script import SaidScript, file_beside, is_yaml, stand_in

if TYPE_CHECKING:
    from planner.model.megatron_args import LaunchJob
    from planner.model.shell.launches import Launch
    from planner.model.spec import ModelSpec

_FILES = frozenset({".json", ".py", ".toml", ".yaml", ".yml"})
SUFFIXES = frozenset({".sh", ".bash", ".args", ".txt", ".slurm", ".sbatch"})


def needs_model(path: str, text: str | None = None) -> bool:
    """Whether a file says how to train and not what: the model is named beside it.  ``text``: its own, if it was sent.

    Raises NotFound, DocumentInvalid.
    """
    if Path(path).suffix.lower() == ".json":
        return True
    return is_yaml(path) and not (_is_maxtext(path, text) or _is_bridge_yaml(path, text) or _is_nemo_yaml(path, text))


def _is_bridge_yaml(path: str, text: str | None) -> bool:
    from planner.backends.megatron_bridge.script import is_bridge_yaml
    from planner.operations.reading import read_text

    return is_bridge_yaml(read_text(Path(path)) if text is None else text)


def _is_nemo_yaml(path: str, text: str | None) -> bool:
    from planner.backends.nemo.yaml_config import is_nemo_yaml
    from planner.operations.reading import read_text

    return is_nemo_yaml(read_text(Path(path)) if text is None else text)


def _is_maxtext(path: str, text: str | None) -> bool:
    """Whether a YAML file has keys of MaxText and none of Accelerate."""
    from planner.operations.reading import read_text

    text = read_text(Path(path)) if text is None else text
    if re.search(r"^(distributed_type|compute_environment)\s*:", text, re.MULTILINE):
        return False
    return re.search(r"^(base_config|model_name|per_device_batch_size)\s*:", text, re.MULTILINE) is not None


def is_job_file(reference: str) -> bool:
    """Whether a reference names a file that some reader of launches reads."""
    return Path(reference).suffix.lower() in SUFFIXES | _FILES


def is_script(reference: str) -> bool:
    """Whether a reference names a launch script and no model."""
    return Path(reference).suffix.lower() in SUFFIXES


def megatron_script(reference: str) -> LaunchJob | None:
    """The job that a script describes; None when ``reference`` is no script.  Raises DocumentInvalid, NotFound."""
    return read_script(SaidScript(reference)) if is_script(reference) else None


def read_script(said: SaidScript) -> LaunchJob:
    """The job that a script describes with what is said beside it.

    Raises NotFound, FindingsInvalid, and DocumentInvalid for a variable that the script never names.
    """
    from planner.model.megatron_args import job_of_launch, read_launch, require_start
    from planner.model.shell.launches import Given
    from planner.operations.reading import read_text

    path = Path(said.path)
    text, texts = read_text(path) if said.sent is None else said.sent, list[str]()
    if bridge_job := bridge_file(said, text):
        return bridge_job
    if nemo_job := nemo_file(said, text):
        return nemo_job
    if path.suffix.lower() in {".toml", ".py"}:
        return _torchtitan_job(said, text)
    if is_yaml(said.path) and _is_maxtext(said.path, text):
        return _maxtext_job(said, text)
    if needs_model(said.path, text):
        return _configured_job(said, text)

    def opened(name: str) -> str | None:
        """A file beside the script, or where the command runs; of a text that was sent no file here."""
        if said.sent is not None:
            texts.append(said.beside.get(name, said.beside.get(Path(name).name, "")))
            return texts[-1] or None
        for place in (path.parent / name, Path(name)):
            if place.is_file():
                texts.append(read_text(place))
                return texts[-1]
        return None

    given = Given(said.variables, said.arguments, said.path, opened)
    try:
        launch = read_launch(text, said.place, given)
        require_start(launch, said.place)
        if bridge_job := bridge_launch(said, text, launch):
            return bridge_job
        if nemo_job := nemo_launch(said, text, launch):
            return nemo_job
        if followed := _followed_launch(said, text, launch):
            return followed
        if said.model is not None:
            raise DocumentInvalid("the script says the model", where="--model", hint="keep one of --model and --from")
        return job_of_launch(launch, text, path.stem, said.place, given, said.vocab_size, said.devices)
    finally:
        _refuse_unnamed(said, path.name, (text, *texts))


def _followed_launch(said: SaidScript, text: str, launch: Launch) -> LaunchJob | None:
    """The run of a script that starts a trainer with a configuration file; None for any other."""
    from planner.model.shell.slurm import devices_of_job
    from planner.operations.followed_files import followed_job, is_maxtext, named_file
    from planner.operations.trainer_files import with_trainer_file

    words = launch.words
    if not is_maxtext(words):
        words = with_trainer_file(words, said.place, lambda name: file_beside(said, name))
    found = named_file(words, said.place)
    if found is None:
        return None

    def model(name: str | None) -> ModelSpec | None:
        from planner.backends.megatron_bridge.recipe_table import model_of_hf

        return stand_in(said) or (None if name is None else model_of_hf(name))

    if said.vocab_size is not None:
        raise DocumentInvalid("the file that the script names says it", where="--vocab-size", hint="leave it out")
    devices = said.devices or found.devices or devices_of_job(text, said.variables)
    if found.open_devices and devices is None:
        what = f"--num_processes is '{found.open_devices}', which the script does not decide"
        raise DocumentInvalid(what, where=said.place, hint="say it: --devices N")
    found, content = found.text(lambda name: file_beside(said, name))
    job = followed_job(found, content, said.place, devices, model)
    places = (*launch.undecided, *job.undecided)
    return replace(job, undecided=places, taken_as_unset=launch.taken_as_unset, launches=launch.count)


def _torchtitan_job(said: SaidScript, text: str) -> LaunchJob:
    """The run of a job file or config module of torchtitan; its number of devices is the launcher's."""
    from planner.backends.torchtitan.job import job_of_module, job_of_toml

    devices = _devices_beside(said, "a job file of torchtitan", "torchtitan's flavors say it", ("WORLD_SIZE", "NGPU"))
    words = said.arguments or ()
    if Path(said.path).suffix.lower() == ".toml":
        return job_of_toml(text, said.place, words, devices)
    folder = Path(said.path).absolute().parent.name if said.sent is None else ""
    return job_of_module(text, said.place, words, devices, folder)


def _maxtext_job(said: SaidScript, text: str) -> LaunchJob:
    """The run of a MaxText configuration."""
    from planner.backends.maxtext.job import job_of_yaml

    devices = _devices_beside(said, "a configuration file", "vocab_size is one of its keys")
    return job_of_yaml(text, said.place, said.arguments or (), devices)


def _configured_job(said: SaidScript, text: str) -> LaunchJob:
    """The run of a configuration of DeepSpeed or Accelerate, of the model that is named beside it."""
    from planner.backends.accelerate.job import job_of_yaml
    from planner.backends.deepspeed.job import job_of_config

    model = stand_in(said)
    if model is None:
        hint = "name it: --model config.json, or a built-in name"
        raise DocumentInvalid("it does not say which model is trained", where=said.place, hint=hint)
    devices = _devices_beside(said, "a configuration file", "the model says it", ("WORLD_SIZE",))
    read = job_of_config if Path(said.path).suffix.lower() == ".json" else job_of_yaml
    return read(text, said.place, model, said.arguments or (), devices)


def _devices_beside(said: SaidScript, file: str, vocabulary: str, names: tuple[str, ...] = ()) -> int | None:
    """Devices that flags or the launcher's variables ``names`` say of a file that is no shell script.

    Raises DocumentInvalid for another variable, and for a vocabulary, which ``vocabulary`` says where it is from.
    """
    if said.vocab_size is not None:
        raise DocumentInvalid(vocabulary, where="--vocab-size", hint="leave it out")
    for name in said.variables:
        if name not in names:
            raise DocumentInvalid(f"{file} asks for no {name}", where="--set", hint="leave it out")
    launched = next((said.variables[name] for name in names if said.variables.get(name)), "")
    return said.devices or (int(launched) if launched.isdecimal() else None)


def _refuse_unnamed(said: SaidScript, script: str, texts: Iterable[str]) -> None:
    where = "--set" if said.sent is None else "/variables"
    for name in said.variables:
        if not any(re.search(rf"\b{re.escape(name)}\b", each) for each in texts):
            raise DocumentInvalid(
                f"{script} never names {name}", where=where, hint="write the variable as the script does"
            )


def script_strategy(job: LaunchJob) -> dict[str, Any]:
    """Strategy fields as the script means them: what Megatron-LM has off by default is off."""
    from planner.model.megatron_strategy import with_what_is_off

    return with_what_is_off(job.strategy) if job.megatron_defaults else dict(job.strategy)


def plain_strategy(job: LaunchJob) -> dict[str, int | str | bool]:
    """Strategy fields of a script as estimates take them: several words of a field as one text, ``norm+activation``."""
    given = script_strategy(job)
    return {name: "+".join(value) if isinstance(value, tuple) else value for name, value in given.items()}


def script_backend(job: LaunchJob) -> str:
    """The back-end that runs the script."""
    return job.software


def script_facts(job: LaunchJob) -> dict[str, Any]:
    """What was read, field by field, and what became of every argument and of the open places: plain data."""
    strategy = {name: "+".join(value) if isinstance(value, tuple) else value for name, value in job.strategy.items()}
    if job.chunk_layers is not None and len(set(job.chunk_layers)) > 1:
        strategy["chunk_layers"] = ",".join(map(str, job.chunk_layers))
    return {
        "model": model_fields(job.model) | {"vocabulary_from": job.vocabulary.told},
        "workload": dict(job.workload),
        "strategy": strategy,
        "num_devices": job.num_devices,
        "derived": list(job.assumed),
        "arguments": {name: list(values) for name, values in asdict(job.arguments).items()},
        "taken_as_unset": [{"name": name, "line": line} for name, line in job.taken_as_unset],
        "undecided": [asdict(place) for place in job.undecided],
        "left_out": list(job.skipped),
        "set_by_script": list(job.set_by_script),
        "launches": job.launches,
        "software": job.software,
    }


def model_fields(model: ModelSpec) -> dict[str, Any]:
    """Shapes of a model; of layers of several kinds those of the last one."""
    kinds = model.layer_kinds
    attention, moe = kinds[-1].attention, kinds[-1].moe
    mlp = next((kind.mlp for kind in reversed(kinds) if kind.mlp is not None), None)
    shapes: dict[str, Any] = {
        "num_layers": model.num_layers,
        "hidden_size": model.hidden_size,
        "attention": attention.kind,
        "num_heads": attention.num_heads,
        "num_kv_heads": attention.num_kv_heads,
        "head_dim": attention.head_dim,
        "vocab_size": model.vocab_size,
        "position": model.position,
        "tie_embeddings": model.tie_embeddings,
    }
    if mlp is not None:
        shapes["intermediate_size"] = mlp.intermediate_size
    if moe is not None:
        shapes |= {
            "num_experts": moe.num_experts,
            "top_k": moe.top_k,
            "expert_intermediate_size": moe.expert_intermediate_size,
            "shared_intermediate_size": moe.shared_intermediate_size,
        }
    if model.mtp is not None:
        shapes["mtp_layers"] = model.mtp.num_layers
    return shapes
