"""A launch as Hydra overrides of ``verl.trainer.main_ppo``, and back.

The names are those of verl 0.9.1, ``verl/trainer/config`` (``ppo_trainer.yaml`` and its groups).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from planner.errors import DocumentInvalid
from planner.rl.frameworks.verl.launch import VerlLaunch

Overrides = dict[str, str]
_ACTOR, _ROLLOUT, _REF = "actor_rollout_ref.actor", "actor_rollout_ref.rollout", "actor_rollout_ref.ref"
SAID_ONLY = frozenset(
    {
        "data.train_files",
        "data.val_files",
        "critic.model.path",
        f"{_ROLLOUT}.mode",
        "transfer_queue.enable",
        f"{_ACTOR}.use_dynamic_bsz",
        f"{_ROLLOUT}.log_prob_use_dynamic_bsz",
        f"{_ROLLOUT}.log_prob_max_token_len_per_gpu",
        f"{_ROLLOUT}.max_model_len",
        f"{_ROLLOUT}.multi_turn.enable",
        "trainer.v1.sampler.max_off_policy_strategy",
        f"{_ROLLOUT}.free_cache_engine",
        f"{_ROLLOUT}.calculate_log_probs",
        f"{_REF}.log_prob_use_dynamic_bsz",
        f"{_REF}.log_prob_max_token_len_per_gpu",
        "critic.strategy",
        "critic.ppo_max_token_len_per_gpu",
        "actor_rollout_ref.model.use_remove_padding",
        "trainer.use_v1",
        "actor_rollout_ref.hybrid_engine",
    }
)
"""Overrides that follow from others, or that no launch of ours says otherwise; reading takes them as they are."""


def overrides_of(launch: VerlLaunch) -> Overrides:
    """Name -> value, in the order of verl's own scripts."""
    found: dict[str, Any] = {"model_engine": "megatron"} if launch.trainer == "megatron" else {}
    found |= _data(launch) | _actor(launch) | _rollout(launch) | _trainer(launch)
    return {name: _text(value) for name, value in found.items()}


def words_of(launch: VerlLaunch) -> list[str]:
    """``name=value`` words for a command line, unquoted."""
    return [f"{name}={value}" for name, value in overrides_of(launch).items()]


def launch_from(words: Iterable[str], where: str = "overrides") -> VerlLaunch:
    """The launch that overrides say.  Raises DocumentInvalid for one that this reader does not know."""
    said = dict(word.partition("=")[::2] for word in words)
    get = _Reader(said, where)
    megatron = get.text("model_engine", "dp") == "megatron"
    mode = get.text("trainer.v1.trainer_mode", "sync")
    split = mode == "separate_async"
    estimator = get.text("algorithm.adv_estimator")
    sync_steps = get.number("trainer.v1.separate_async.parameter_sync_step", 1)
    versions = get.number("trainer.v1.sampler.max_off_policy_threshold", 8) if split else 0
    ahead = get.real("trainer.v1.separate_async.num_warmup_batches", 1.0) if split else 0.0
    prompts, mini = get.number("data.train_batch_size"), get.number(f"{_ACTOR}.ppo_mini_batch_size")
    if split and prompts != sync_steps * mini:
        raise DocumentInvalid(
            f"{prompts} prompts are not {sync_steps} mini-batches of {mini}, which separate_async asks for", where=where
        )
    recompute = _recompute(get, megatron)
    offload_of = "megatron" if megatron else "fsdp_config"
    launch = VerlLaunch.model_validate(
        {
            "estimator": estimator,
            "dapo": [get.text(f"{_ACTOR}.clip_ratio_{end}", "0.2") for end in ("low", "high")] == ["0.2", "0.28"],
            "model_path": get.text("actor_rollout_ref.model.path"),
            "placement": "split" if split else "colocated",
            "synchrony": _synchrony(split=split, ahead=ahead),
            "off_policy_versions": versions,
            "warm_up": ahead,
            "prompts": prompts,
            "samples_per_prompt": get.number(f"{_ROLLOUT}.n", 1),
            "mini_batch_prompts": mini,
            "epochs": get.number(f"{_ACTOR}.ppo_epochs", 1),
            "longest_prompt": get.number("data.max_prompt_length"),
            "longest_response": get.number("data.max_response_length"),
            "reference": any([get.flag(f"{_ACTOR}.use_kl_loss"), get.flag("algorithm.use_kl_in_reward")]),
            "old_log_prob": not get.flag("algorithm.rollout_correction.bypass_mode"),
            "turns": get.number(f"{_ROLLOUT}.multi_turn.max_assistant_turns", 1),
            "trainer": "megatron" if megatron else "fsdp2",
            "trainer_nodes": get.number("trainer.nnodes", 1),
            "trainer_devices_per_node": get.number("trainer.n_gpus_per_node", 8),
            "offload": _offload(get, offload_of),
            **_degrees(get, megatron=megatron),
            "recompute": recompute,
            "tokens_per_device": get.number(f"{_ACTOR}.ppo_max_token_len_per_gpu", 16384),
            "engine": get.text(f"{_ROLLOUT}.name"),
            "rollout_nodes": get.number(f"{_ROLLOUT}.nnodes", 0),
            "rollout_devices_per_node": get.number(
                f"{_ROLLOUT}.n_gpus_per_node", get.number("trainer.n_gpus_per_node", 8)
            ),
            "rollout_tp": get.number(f"{_ROLLOUT}.tensor_model_parallel_size", 2),
            "rollout_ep": get.number(f"{_ROLLOUT}.expert_parallel_size", 1),
            "memory_fraction": get.real(f"{_ROLLOUT}.gpu_memory_utilization", 0.5),
            "max_num_sequences": get.number(f"{_ROLLOUT}.max_num_seqs", 256),
            "weights_by": get.text(f"{_ROLLOUT}.checkpoint_engine.backend", "naive"),
        }
    )
    get.require_all_read()
    return launch


class _Reader:
    """Overrides that are read one by one; what nobody asked for is an error at the end."""

    def __init__(self, said: Mapping[str, str], where: str) -> None:
        self._said, self._where = said, where
        self._read: set[str] = set()

    def text(self, name: str, default: str | None = None) -> str:
        self._read.add(name)
        value = self._said.get(name, default)
        if value is None:
            raise DocumentInvalid(f"{name} is not said", where=self._where, hint=f"give {name}=VALUE")
        return value

    def number(self, name: str, default: int | None = None) -> int:
        text = self.text(name, None if default is None else str(default))
        try:
            return int(text)
        except ValueError:
            raise DocumentInvalid(f"{name}={text} is no whole number", where=self._where) from None

    def real(self, name: str, default: float) -> float:
        text = self.text(name, str(default))
        try:
            return float(text)
        except ValueError:
            raise DocumentInvalid(f"{name}={text} is no number", where=self._where) from None

    def flag(self, name: str) -> bool:
        return self.text(name, "False").lower() == "true"

    def require_all_read(self) -> None:
        """Raises DocumentInvalid where an override was not read."""
        beside = (_same_as_actor(name) for name in self._said)
        unknown = [name for name, same in zip(self._said, beside, strict=True) if name not in self._read and not same]
        if unknown:
            raise DocumentInvalid(
                f"{len(unknown)} overrides are not read: {', '.join(sorted(unknown)[:5])}", where=self._where
            )


def _same_as_actor(name: str) -> bool:
    return name in SAID_ONLY or name.lstrip("+").startswith(("actor_rollout_ref.ref.", "critic."))


def _text(value: Any) -> str:
    return str(value)


def _synchrony(*, split: bool, ahead: float) -> str:
    """One step ahead is what is called one step off, however it was asked for."""
    if not split:
        return "synchronous"
    return "one_step_off" if ahead == 1 else "asynchronous"


def _data(launch: VerlLaunch) -> dict[str, Any]:
    critic = launch.estimator == "gae"
    found: dict[str, Any] = {
        "algorithm.adv_estimator": launch.estimator,
        "algorithm.use_kl_in_reward": launch.reference and critic,
        "algorithm.rollout_correction.bypass_mode": not launch.old_log_prob,
        "data.train_files": "$TRAIN_FILES",
        "data.val_files": "$VAL_FILES",
        "data.train_batch_size": launch.prompts,
        "data.max_prompt_length": launch.longest_prompt,
        "data.max_response_length": launch.longest_response,
        "actor_rollout_ref.model.path": launch.model_path,
        "actor_rollout_ref.model.use_remove_padding": True,
    }
    return found


def _actor(launch: VerlLaunch) -> dict[str, Any]:
    found: dict[str, Any] = {
        f"{_ACTOR}.ppo_mini_batch_size": launch.mini_batch_prompts,
        f"{_ACTOR}.ppo_epochs": launch.epochs,
        f"{_ACTOR}.use_dynamic_bsz": True,
        f"{_ACTOR}.ppo_max_token_len_per_gpu": launch.tokens_per_device,
        f"{_ACTOR}.use_kl_loss": launch.reference and launch.estimator != "gae",
    }
    if launch.dapo:
        found |= {f"{_ACTOR}.clip_ratio_low": 0.2, f"{_ACTOR}.clip_ratio_high": 0.28}
    roles = [_ACTOR, *([_REF] if launch.reference else []), *(["critic"] if launch.estimator == "gae" else [])]
    for role in roles:
        found |= _role(launch, role)
    if launch.reference:
        found |= {
            f"{_REF}.log_prob_use_dynamic_bsz": True,
            f"{_REF}.log_prob_max_token_len_per_gpu": launch.tokens_per_device,
        }
    if launch.estimator == "gae":
        found |= {
            "critic.model.path": launch.model_path,
            "critic.ppo_max_token_len_per_gpu": launch.tokens_per_device,
        }
    return found


def _role(launch: VerlLaunch, role: str) -> dict[str, Any]:
    """The layout of the actor, which its reference and a critic as large share."""
    leaves = launch.offload == "states" or (launch.offload == "reference" and role == _REF)
    if launch.trainer == "fsdp2":
        found: dict[str, Any] = {} if role == _REF else {f"{role}.strategy": "fsdp2"}
        # A critic's own FSDP settings stand in its group of the same name (critic/dp_critic.yaml).
        config = f"{role}.fsdp" if role == "critic" else f"{role}.fsdp_config"
        found |= {
            f"{config}.fsdp_size": launch.shard,
            f"{config}.param_offload": leaves,
            f"{role}.ulysses_sequence_parallel_size": launch.cp,
        }
        if role != _REF:
            found[f"{config}.optimizer_offload"] = leaves
            model = "critic.model" if role == "critic" else "actor_rollout_ref.model"
            found[f"{model}.enable_gradient_checkpointing"] = launch.recompute == "full"
        return found
    name = f"{role}.megatron"
    found = {
        f"{name}.tensor_model_parallel_size": launch.tp,
        f"{name}.pipeline_model_parallel_size": launch.pp,
        f"{name}.context_parallel_size": launch.cp,
        f"{name}.expert_model_parallel_size": launch.ep,
        f"{name}.sequence_parallel": launch.sp,
        f"{name}.param_offload": leaves,
    }
    if launch.vpp > 1:
        found[f"{name}.virtual_pipeline_model_parallel_size"] = launch.vpp
    if launch.ep > 1:
        found[f"{name}.expert_tensor_parallel_size"] = launch.etp
    if role != _REF:
        found[f"{name}.optimizer_offload"] = leaves
    if role != _REF:  # a reference takes the actor's (ref/megatron_ref.yaml)
        found |= _recompute_words(launch, name)
    return found


def _recompute_words(launch: VerlLaunch, megatron: str) -> dict[str, Any]:
    name = f"{megatron}.override_transformer_config"
    ends = {"first": launch.first_layers, "last": launch.last_layers}
    found: dict[str, Any] = {
        f"+{name}.num_layers_in_{end}_pipeline_stage": count for end, count in ends.items() if count
    }
    if launch.recompute == "none":
        return found
    found[f"{name}.recompute_granularity"] = launch.recompute
    if launch.recompute == "full":
        found |= {f"{name}.recompute_method": "uniform", f"{name}.recompute_num_layers": 1}
    return found


def _offload(get: _Reader, engine: str) -> str:
    if get.flag(f"{_ACTOR}.{engine}.param_offload"):
        return "states"
    return "reference" if get.flag(f"{_REF}.{engine}.param_offload") else "nothing"


def _recompute(get: _Reader, megatron: bool) -> str:
    if not megatron:
        checkpoints = get.text("actor_rollout_ref.model.enable_gradient_checkpointing", "True").lower() == "true"
        return "full" if checkpoints else "none"
    name = f"{_ACTOR}.megatron.override_transformer_config"
    granularity = get.text(f"{name}.recompute_granularity", "none")
    each = (get.text(f"{name}.recompute_method", "uniform"), get.number(f"{name}.recompute_num_layers", 1))
    if granularity == "full" and each != ("uniform", 1):
        raise DocumentInvalid("only uniform recomputation of each layer is read", where=name)
    return granularity


def _degrees(get: _Reader, *, megatron: bool) -> dict[str, Any]:
    if not megatron:
        get.text(f"{_ACTOR}.strategy", "fsdp")
        get.flag(f"{_ACTOR}.fsdp_config.optimizer_offload")
        cp = get.number(f"{_ACTOR}.ulysses_sequence_parallel_size", 1)
        return {"cp": cp, "shard": get.number(f"{_ACTOR}.fsdp_config.fsdp_size", -1)}
    name = f"{_ACTOR}.megatron"
    get.flag(f"{name}.optimizer_offload")
    return {
        "tp": get.number(f"{name}.tensor_model_parallel_size", 1),
        "pp": get.number(f"{name}.pipeline_model_parallel_size", 1),
        "vpp": get.number(f"{name}.virtual_pipeline_model_parallel_size", 1),
        "cp": get.number(f"{name}.context_parallel_size", 1),
        "ep": get.number(f"{name}.expert_model_parallel_size", 1),
        "etp": get.number(f"{name}.expert_tensor_parallel_size", 1),
        "sp": get.text(f"{name}.sequence_parallel", "True").lower() == "true",
        "shard": 0,
        "first_layers": get.number(f"+{name}.override_transformer_config.num_layers_in_first_pipeline_stage", 0),
        "last_layers": get.number(f"+{name}.override_transformer_config.num_layers_in_last_pipeline_stage", 0),
    }


def _rollout(launch: VerlLaunch) -> dict[str, Any]:
    found: dict[str, Any] = {
        f"{_ROLLOUT}.name": launch.engine,
        f"{_ROLLOUT}.mode": "async",
        f"{_ROLLOUT}.n": launch.samples_per_prompt,
        f"{_ROLLOUT}.tensor_model_parallel_size": launch.rollout_tp,
        f"{_ROLLOUT}.expert_parallel_size": launch.rollout_ep,
        f"{_ROLLOUT}.gpu_memory_utilization": launch.memory_fraction,
        f"{_ROLLOUT}.max_num_seqs": launch.max_num_sequences,
        f"{_ROLLOUT}.max_model_len": launch.longest_prompt + launch.longest_response,
        f"{_ROLLOUT}.calculate_log_probs": True,
        f"{_ROLLOUT}.log_prob_use_dynamic_bsz": True,
        f"{_ROLLOUT}.log_prob_max_token_len_per_gpu": launch.tokens_per_device,
        f"{_ROLLOUT}.free_cache_engine": launch.placement == "colocated",
        f"{_ROLLOUT}.checkpoint_engine.backend": launch.weights_by,
    }
    if launch.rollout_nodes:
        found[f"{_ROLLOUT}.nnodes"] = launch.rollout_nodes
        found[f"{_ROLLOUT}.n_gpus_per_node"] = launch.rollout_devices_per_node
    if launch.turns > 1:
        found[f"{_ROLLOUT}.multi_turn.enable"] = True
        found[f"{_ROLLOUT}.multi_turn.max_assistant_turns"] = launch.turns
    return found


def _trainer(launch: VerlLaunch) -> dict[str, Any]:
    found: dict[str, Any] = {
        "trainer.use_v1": True,
        "trainer.nnodes": launch.trainer_nodes,
        "trainer.n_gpus_per_node": launch.trainer_devices_per_node,
        "trainer.v1.trainer_mode": "sync" if launch.placement == "colocated" else "separate_async",
        "transfer_queue.enable": True,
    }
    if launch.placement == "split":
        found |= {
            "actor_rollout_ref.hybrid_engine": False,
            "trainer.v1.separate_async.parameter_sync_step": launch.prompts // launch.mini_batch_prompts,
            "trainer.v1.separate_async.num_warmup_batches": launch.warm_up,
            "trainer.v1.sampler.max_off_policy_threshold": launch.off_policy_versions,
            # One step off trains on all samples of the step before: it waits for the longest, and drops none.
            "trainer.v1.sampler.max_off_policy_strategy": "wait" if launch.synchrony == "one_step_off" else "drop",
        }
    return found
