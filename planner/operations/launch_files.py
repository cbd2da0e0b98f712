"""A launch script or job file of a back-end as the question: it says model, workload, strategy and devices.

So ``meshwright estimate --from train.sh --cluster dgx-h100`` predicts the run that a person has today, and ``plan``
with the same words finds a better one.  Flags always win over the script.  What the script leaves open or what was
ignored is told with every answer (``script_facts``).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.errors import DocumentInvalid

if TYPE_CHECKING:
    from planner.backends.megatron_bridge.job import Beside
    from planner.model.megatron_args import LaunchJob
    from planner.model.shell.launches import Launch
    from planner.model.spec import ModelSpec

_FILES = frozenset({".json", ".py", ".toml", ".yaml", ".yml"})
_FOLDERS_ABOVE = 4
"""A script names files from its own folder, or from the top of the repository that it stands in."""
SUFFIXES = frozenset({".sh", ".bash", ".args", ".txt", ".slurm", ".sbatch"})


@dataclass(frozen=True, slots=True)
class SaidScript:
    """A launch script, and what is said beside it.

    ``variables``: its environment.  ``arguments``: its own; None = nothing is said of them.  ``vocab_size``: tokens of
    its tokenizer.  ``devices``: instead of the script's own number.  ``model``: of a file that says none.

    ``sent``: its text where it is no file of this machine; ``beside``: then the texts of the files that it reads, by
    the names that it calls them.
    """

    path: str
    variables: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] | None = None
    vocab_size: int | None = None
    devices: int | None = None
    model: str | Mapping[str, Any] | ModelSpec | None = None
    sent: str | None = None
    beside: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """Where errors are: the file, or the part of a request."""
        return self.path if self.sent is None else "/text"


def needs_model(path: str, text: str | None = None) -> bool:
    """Whether a file says how to train and not what: the model is named beside it.  ``text``: its own, if it was sent.

    Raises NotFound, DocumentInvalid.
    """
    if Path(path).suffix.lower() == ".json":
        return True
    return _is_yaml(path) and not _is_maxtext(path, text) and not _is_bridge_yaml(path, text)


def _is_bridge_yaml(path: str, text: str | None) -> bool:
    from planner.backends.megatron_bridge.script import is_bridge_yaml
    from planner.operations.reading import read_text

    return is_bridge_yaml(read_text(Path(path)) if text is None else text)


def _is_yaml(path: str) -> bool:
    return Path(path).suffix.lower() in {".yaml", ".yml"}


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
    if bridge_job := _bridge_file(said, text):
        return bridge_job
    if nemo_job := _nemo_file(said, text):
        return nemo_job
    if path.suffix.lower() in {".toml", ".py"}:
        return _torchtitan_job(said, text)
    if _is_yaml(said.path) and _is_maxtext(said.path, text):
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
        if bridge_job := _bridge_launch(said, text, launch):
            return bridge_job
        if nemo_job := _nemo_launch(said, text, launch):
            return nemo_job
        if followed := _followed_launch(said, text, launch):
            return followed
        if said.model is not None:
            raise DocumentInvalid("the script says the model", where="--model", hint="keep one of --model and --from")
        return job_of_launch(launch, text, path.stem, said.place, given, said.vocab_size, said.devices)
    finally:
        _refuse_unnamed(said, path.name, (text, *texts))


def _bridge_file(said: SaidScript, text: str) -> LaunchJob | None:
    """The run of a Python file or a YAML file of Megatron-Bridge; None for any other."""
    from planner.backends.megatron_bridge import script
    from planner.backends.megatron_bridge.job import Beside

    is_python = Path(said.path).suffix.lower() == ".py" and script.is_bridge(text)
    if not is_python and not (_is_yaml(said.path) and script.is_bridge_yaml(text)):
        return None
    sources = script.Sources(said.place, said.arguments or (), said.variables, lambda name: _beside(said, name))
    beside = Beside(said.devices or _launched(said), said.vocab_size, _stand_in(said))
    return (script.job_of_python if is_python else script.job_of_yaml)(text, sources, beside)


def _bridge_launch(said: SaidScript, text: str, launch: Launch) -> LaunchJob | None:
    """The run of a script that starts one of Megatron-Bridge's launchers; None for any other."""
    from planner.backends.megatron_bridge.runner import is_runner
    from planner.backends.megatron_bridge.script import Sources, job_of_words
    from planner.model.megatron_flags import MegatronFlags
    from planner.model.megatron_strategy import launched_devices
    from planner.model.shell.slurm import devices_of_job

    if not is_runner(launch.words):
        return None
    launched = launched_devices(MegatronFlags(launch.words, said.place)) or devices_of_job(text, said.variables)
    return job_of_words(launch.words, Sources(said.place), _beside_launch(said, launched, launch))


def _beside_launch(said: SaidScript, launched: int | None, launch: Launch) -> Beside:
    """What is said beside a configuration that a shell script starts."""
    from planner.backends.megatron_bridge.job import Beside

    return Beside(
        said.devices or launched,
        said.vocab_size,
        _stand_in(said),
        undecided=launch.undecided,
        taken_as_unset=launch.taken_as_unset,
        launches=launch.count,
    )


def _followed_launch(said: SaidScript, text: str, launch: Launch) -> LaunchJob | None:
    """The run of a script that starts a trainer with a configuration file; None for any other."""
    from planner.model.shell.slurm import devices_of_job
    from planner.operations.followed_files import followed_job, named_file

    found = named_file(launch.words, said.place)
    if found is None:
        return None

    def model(name: str | None) -> ModelSpec | None:
        from planner.backends.megatron_bridge.recipe_table import model_of_hf

        return _stand_in(said) or (None if name is None else model_of_hf(name))

    if said.vocab_size is not None:
        raise DocumentInvalid("the file that the script names says it", where="--vocab-size", hint="leave it out")
    devices = said.devices or found.devices or devices_of_job(text, said.variables)
    found, content = found.text(lambda name: _beside(said, name))
    job = followed_job(found, content, said.place, devices, model)
    places = (*launch.undecided, *job.undecided)
    return replace(job, undecided=places, taken_as_unset=launch.taken_as_unset, launches=launch.count)


def _nemo_file(said: SaidScript, text: str) -> LaunchJob | None:
    """The run of a Python file of NeMo 2; None for any other."""
    from planner.backends.megatron_bridge.job import Beside
    from planner.backends.nemo import script

    if Path(said.path).suffix.lower() != ".py" or not script.is_nemo(text):
        return None
    beside = Beside(said.devices or _launched(said), said.vocab_size, _stand_in(said))
    return script.job_of_python(text, script.Sources(said.place, said.arguments or (), said.variables), beside)


def _nemo_launch(said: SaidScript, text: str, launch: Launch) -> LaunchJob | None:
    """The run of a script that starts ``nemo llm``; None for any other."""
    from planner.backends.nemo import script

    if not script.is_command(launch.words):
        return None
    return script.job_of_words(launch.words, script.Sources(said.place), _beside_launch(said, None, launch))


def _stand_in(said: SaidScript) -> ModelSpec | None:
    """The model that is named beside a file."""
    from planner.model.builtin import builtin_model
    from planner.operations.question import model_of

    if isinstance(said.model, str) and said.sent is not None:
        return builtin_model(said.model)  # no file of this machine
    return None if said.model is None else model_of(said.model)


def _launched(said: SaidScript) -> int | None:
    world = said.variables.get("WORLD_SIZE", "")
    return int(world) if world.isdecimal() else None


def _beside(said: SaidScript, name: str) -> str | None:
    """A file that a script reads: sent with it, or on this machine beside it or where the command runs."""
    from planner.operations.reading import read_text

    if said.sent is not None:
        texts = {posixpath.normpath(each): text for each, text in said.beside.items()}
        return texts.get(posixpath.normpath(name), texts.get(Path(name).name))
    above = Path(said.path).absolute().parents
    for place in (*(folder / name for folder in above[:_FOLDERS_ABOVE]), Path(name)):
        if place.is_file():
            return read_text(place)
    return None


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

    model = _stand_in(said)
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
    if job.chunk_layers is not None:
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
