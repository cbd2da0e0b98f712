"""Launches of Megatron-Bridge and NeMo: Python files, YAML files, and shell scripts that start either."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from planner.operations.said_script import SaidScript, file_beside, is_yaml, launched, stand_in

if TYPE_CHECKING:
    from planner.backends.megatron_bridge.job import Beside
    from planner.model.megatron_args import LaunchJob
    from planner.model.shell.launches import Launch


def bridge_file(said: SaidScript, text: str) -> LaunchJob | None:
    """The run of a Python file or a YAML file of Megatron-Bridge; None for any other."""
    from planner.backends.megatron_bridge import script
    from planner.backends.megatron_bridge.job import Beside

    is_python = Path(said.path).suffix.lower() == ".py" and script.is_bridge(text)
    if not is_python and not (is_yaml(said.path) and script.is_bridge_yaml(text)):
        return None
    sources = script.Sources(said.place, said.arguments or (), said.variables, lambda name: file_beside(said, name))
    beside = Beside(said.devices or launched(said), said.vocab_size, stand_in(said))
    return (script.job_of_python if is_python else script.job_of_yaml)(text, sources, beside)


def bridge_launch(said: SaidScript, text: str, launch: Launch) -> LaunchJob | None:
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
        stand_in(said),
        undecided=launch.undecided,
        taken_as_unset=launch.taken_as_unset,
        launches=launch.count,
    )


def nemo_file(said: SaidScript, text: str) -> LaunchJob | None:
    """The run of a Python file of NeMo 2 or a YAML file of NeMo 1; None for any other."""
    from planner.backends.megatron_bridge.job import Beside
    from planner.backends.nemo import script
    from planner.backends.nemo.yaml_config import is_nemo_yaml, job_of_yaml

    beside = Beside(said.devices or launched(said), said.vocab_size, stand_in(said))
    if is_yaml(said.path) and is_nemo_yaml(text):
        return job_of_yaml(text, said.place, said.arguments or (), beside, Path(said.path).stem)
    if Path(said.path).suffix.lower() != ".py" or not script.is_nemo(text):
        return None
    return script.job_of_python(text, script.Sources(said.place, said.arguments or (), said.variables), beside)


def nemo_launch(said: SaidScript, text: str, launch: Launch) -> LaunchJob | None:
    """The run of a script that starts ``nemo llm``; None for any other."""
    from planner.backends.nemo import script

    if not script.is_command(launch.words):
        return _started_python(said, launch)
    return script.job_of_words(launch.words, script.Sources(said.place), _beside_launch(said, None, launch))


def _started_python(said: SaidScript, launch: Launch) -> LaunchJob | None:
    """The run of a Python file of NeMo or Megatron-Bridge that a script starts; None where it starts no such file."""
    from planner.backends.megatron_bridge import script as bridge
    from planner.backends.nemo import script as nemo

    place = next((place for place, word in enumerate(launch.words) if word.endswith(".py") and word[0] != "-"), None)
    text = None if place is None else file_beside(said, launch.words[place])
    if text is None or place is None or not (nemo.is_nemo(text) or bridge.is_bridge(text)):
        return None
    beside, words = _beside_launch(said, None, launch), launch.words[place + 1 :]
    if nemo.is_nemo(text):
        job = nemo.job_of_python(text, nemo.Sources(launch.words[place], words, said.variables), beside)
    else:
        sources = bridge.Sources(launch.words[place], words, said.variables, lambda name: file_beside(said, name))
        job = bridge.job_of_python(text, sources, beside)
    return replace(job, undecided=(*launch.undecided, *job.undecided))
