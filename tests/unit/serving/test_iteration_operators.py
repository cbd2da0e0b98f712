"""What one iteration runs on one device: shapes, cuts and collectives of known models."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from planner.model.builtin import builtin_model
from planner.serving.engines.sglang.behaviour import BEHAVIOUR as SGLANG
from planner.serving.engines.tensorrt_llm.behaviour import BEHAVIOUR as TENSORRT_LLM
from planner.serving.engines.vllm.behaviour import BEHAVIOUR as VLLM
from planner.serving.layout import Formats, InstanceGroup, InstanceLayout
from planner.serving.predict.behaviour import Behaviour
from planner.serving.predict.iteration_operators import (
    Exchange,
    LatentHeads,
    Matmul,
    RoutedExperts,
    iteration_operators,
)
from planner.serving.predict.iteration_time import Batch, IterationTimes, Links
from planner.serving.predict.memory import cache_need, device_memory, weight_bytes
from profiles.serving_kernels import kernel_times
from profiles.serving_kernels.kernel_times import AttentionHeads


def works(model: str, layout: InstanceLayout, formats: Formats | None = None) -> Counter[Any]:
    return Counter(dict(iteration_operators(builtin_model(model), layout, formats or Formats()).times))


def test_a_dense_model_is_cut_by_tp() -> None:
    found = works("llama-3.1-70b", InstanceLayout(tp=4), Formats(weights="fp8"))
    assert found[Matmul(10240 // 4, 8192, "fp8")] == 80  # queries, keys and values in one
    assert found[Matmul(57344 // 4, 8192, "fp8")] == 80
    assert found[Matmul(8192, 28672 // 4, "fp8")] == 80
    assert found[Matmul(128256 // 4, 8192, "bf16", "sampled")] == 1
    assert found[AttentionHeads(16, 2, 128)] == 80
    assert found[Exchange("all_reduce", 2.0 * 8192, 4)] == 161  # two a layer, one behind the embedding


def test_latent_attention_joins_what_reads_the_same_and_absorbs_the_up_projection() -> None:
    found = works("deepseek-v3", InstanceLayout(tp=8), Formats(weights="fp8_block"))
    assert found[Matmul(1536 + 576, 7168, "fp8_block")] == 61
    assert found[Matmul(32768 // 8, 512, "fp8_block", "prompt_tokens")] == 61
    assert found[LatentHeads(16)] == 61
    experts = next(work for work in found if isinstance(work, RoutedExperts))
    assert found[experts] == 58
    assert (experts.experts.num_experts, experts.experts.etp, experts.experts.ep) == (256, 8, 1)


def test_attention_ranks_gather_tokens_for_their_experts() -> None:
    found = works("deepseek-v3", InstanceLayout(attention_dp=8, ep=8))
    assert found[Exchange("all_gather", 2.0 * 7168, 8, of_all_ranks=True)] == 58
    assert found[Exchange("reduce_scatter", 2.0 * 7168, 8, of_all_ranks=True)] == 58
    assert not any(isinstance(work, Exchange) and work.operation == "all_reduce" for work in found)


def test_an_iteration_takes_longer_with_more_of_everything() -> None:
    operators = iteration_operators(builtin_model("qwen3-30b-a3b"), InstanceLayout(tp=2), Formats())
    times = IterationTimes(operators, kernel_times("h100-sxm5-80gb", "vllm"), "bf16", Links(8, 50e9, 5e-6))
    by_batch = times.seconds(Batch(sequences=np.array([1.0, 16.0, 256.0]), context=1024))
    assert (np.diff(by_batch) > 0).all()
    assert times.seconds(Batch(sequences=64, context=8192)) > times.seconds(Batch(sequences=64, context=512))
    both = times.seconds(Batch(prompts=1, prompt_tokens=2048, sequences=64, context=512))
    assert both > times.seconds(Batch(prompts=1, prompt_tokens=2048))


def test_weights_and_cache_of_a_device() -> None:
    llama, formats = builtin_model("llama-3.1-70b"), Formats(weights="fp8", kv_cache="fp8")
    whole, half = (weight_bytes(llama, InstanceLayout(tp=tp), formats) for tp in (1, 2))
    assert whole == pytest.approx(72.7e9, rel=0.01)  # 68.5 G in fp8, embedding and head of 2.1 G in 16 bit
    assert half == pytest.approx(whole / 2, rel=0.01)
    assert cache_need(llama, InstanceLayout(tp=4), formats).bytes_a_token == 80 * 2 * 2 * 128
    assert cache_need(llama, InstanceLayout(tp=16), formats).bytes_a_token == 80 * 2 * 1 * 128  # repeated heads
    latent = cache_need(builtin_model("deepseek-v3"), InstanceLayout(tp=8), Formats())
    assert latent.bytes_a_token == 61 * 576 * 2  # every device has it whole


def test_windows_and_states_do_not_grow() -> None:
    need = cache_need(builtin_model("gpt-oss-120b"), InstanceLayout(), Formats())
    assert need.of_request(20_000) - need.of_request(10_000) == pytest.approx(10_000 * need.bytes_a_token)
    assert need.windows == ((128, 18 * 2 * 8 * 64 * 2.0),)
    assert cache_need(builtin_model("qwen3-next-80b-a3b"), InstanceLayout(), Formats()).bytes_a_request > 0


@pytest.mark.parametrize("behaviour", [VLLM, SGLANG, TENSORRT_LLM])
def test_room_for_keys_and_values_is_what_weights_and_reserves_leave(behaviour: Behaviour) -> None:
    group = InstanceGroup(layout=InstanceLayout(tp=4))
    memory = device_memory(builtin_model("llama-3.1-70b"), 80e9, group, Formats(weights="fp8"), behaviour)
    assert memory.weight_bytes + memory.reserved_bytes + memory.cache_bytes == pytest.approx(80e9)
    assert 45e9 < memory.cache_bytes < 58e9


def test_copies_of_experts_take_room() -> None:
    model, layout, formats = builtin_model("deepseek-v3"), InstanceLayout(attention_dp=8, ep=8), Formats()
    plain, copied = (weight_bytes(model, layout, formats, redundant_experts=number) for number in (0, 32))
    assert copied - plain == pytest.approx(58 * 32 / 8 * 3 * 7168 * 2048 * 2)
