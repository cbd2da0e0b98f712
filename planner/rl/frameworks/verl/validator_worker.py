"""Asks verl about overrides: Hydra composes its own configuration tree with them.

Stages: ``compose`` (every name exists, every group is there), ``resolve`` (every interpolation has a value), ``sizes``
(the composed tree holds what was planned: devices, parallel sizes, batch), ``rules`` (the assertions of verl's trainers
that need nothing but the tree: mini-batches, devices of separate engines).  The dataclasses of ``verl.workers.config``
import Ray and PyTorch's distributed package and are not asked; nothing is run.
"""

from __future__ import annotations

import importlib.util
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planner.backends.checking.answers import Refused, serve


def prepare(overlay: Path) -> None:
    """Nothing of verl's packages is imported: only its tree of YAML files is read."""


def composed(words: list[str]) -> Any:
    """Verl's configuration with these overrides, as ``python -m verl.trainer.main_ppo`` composes it."""
    from hydra import compose, initialize_config_dir  # type: ignore[import-not-found]

    found = importlib.util.find_spec("verl")
    if found is None or not found.submodule_search_locations:
        raise Refused("verl is not here")
    folder = Path(next(iter(found.submodule_search_locations))) / "trainer" / "config"
    with initialize_config_dir(config_dir=str(folder), version_base=None):
        return compose(config_name="ppo_trainer", overrides=words)


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """All stages for one launch."""
    from omegaconf import OmegaConf  # type: ignore[import-not-found]

    yield "compose"
    config = composed(request["words"])
    yield "resolve"
    plain = OmegaConf.to_container(config, resolve=True, throw_on_missing=False)
    assert isinstance(plain, dict)
    yield "sizes"
    trainer = config.trainer.nnodes * config.trainer.n_gpus_per_node
    rollout = config.actor_rollout_ref.rollout
    engines = rollout.nnodes * rollout.n_gpus_per_node
    facts["devices"] = trainer + engines
    facts["mode"] = config.trainer.v1.trainer_mode
    if facts["devices"] != request["devices"]:
        raise Refused(f"verl takes {facts['devices']} devices, planned are {request['devices']}")
    ranks = _model_ranks(config)
    facts["data_parallel"] = trainer // ranks
    if trainer % ranks:
        raise Refused(f"{ranks} ranks of a replica do not divide {trainer} devices of the trainer")
    yield "rules"
    actor, prompts = config.actor_rollout_ref.actor, config.data.train_batch_size
    if config.trainer.v1.trainer_mode == "separate_async":
        steps = config.trainer.v1.separate_async.parameter_sync_step
        # verl/trainer/ppo/v1/trainer_separate_async.py:59 and :64
        if prompts != steps * actor.ppo_mini_batch_size:
            raise Refused(f"train_batch_size {prompts} is not {steps} x {actor.ppo_mini_batch_size}")
        if rollout.nnodes <= 0:
            raise Refused("separate_async needs nodes of its engines")
    samples = prompts * rollout.n
    # verl/workers/config/actor.py: ActorConfig.validate
    if prompts < actor.ppo_mini_batch_size:
        raise Refused(f"train_batch_size {prompts} is less than ppo_mini_batch_size {actor.ppo_mini_batch_size}")
    if samples % facts["data_parallel"]:
        raise Refused(f"{samples} samples over {facts['data_parallel']} replicas of the trainer")


def _model_ranks(config: Any) -> int:
    """Devices of one replica of the actor."""
    actor = config.actor_rollout_ref.actor
    if actor.strategy != "megatron":
        return int(actor.ulysses_sequence_parallel_size)
    megatron = actor.megatron
    return int(
        megatron.tensor_model_parallel_size * megatron.pipeline_model_parallel_size * megatron.context_parallel_size
    )


if __name__ == "__main__":
    sys.modules.setdefault("ray", types.ModuleType("ray"))
    serve(stages, prepare)
