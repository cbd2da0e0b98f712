from __future__ import annotations

import pytest

from planner.model.builtin import builtin_model, builtin_models
from planner.model.flops import (
    attention_context,
    forward_flops,
    model_flops_per_token,
    vision_flops_per_image,
)
from planner.model.operator import Operator
from planner.model.operators import (
    embedding_operators,
    head_operators,
    layer_operators,
    mtp_operators,
    vision_operators,
)
from planner.model.parameters import total_parameters
from planner.model.recompute import freed_operators, region
from planner.model.spec import AttentionSpec, LayerRun, LayerSpec, MlpSpec, ModelSpec


def saved(operators: tuple[Operator, ...]) -> float:
    return sum(op.saved_width for op in operators)


def every_operator_list(name: str) -> list[tuple[Operator, ...]]:
    spec = builtin_model(name)
    lists = [layer_operators(spec, kind) for kind in range(len(spec.layer_kinds))]
    return [*lists, embedding_operators(spec), head_operators(spec), mtp_operators(spec), vision_operators(spec)]


def test_gpt_layer_keeps_sixteen_hidden_widths() -> None:
    # Korthikanti et al., arXiv 2205.05198, section 4.1: 34 s b h bytes, less the 2 s b h of dropout masks.
    spec = builtin_model("gpt3-175b")
    assert saved(layer_operators(spec, 0)) * 2 == 32 * spec.hidden_size


def test_gpt_layer_split_over_tp_and_sp_keeps_a_tp_th() -> None:
    # Section 4.2.2 of the paper: with sequence parallelism everything is split.
    shards = {op.saved_shard for op in layer_operators(builtin_model("gpt3-175b"), 0) if op.saved_width}
    assert shards == {"sequence", "heads", "features"}


def test_gpt_layer_split_over_tp_alone_matches_the_paper() -> None:
    # Section 4.2.1: s b h (10 + 24 / t) bytes; 10 holds the two dropout masks (2), the rest is replicated.
    spec = builtin_model("gpt3-175b")
    replicated = sum(op.saved_width for op in layer_operators(spec, 0) if op.saved_shard == "sequence")
    assert 2 * replicated == (10 - 2) * spec.hidden_size


def test_llama_layer_keeps_each_tensor_once() -> None:
    spec = builtin_model("llama-3.1-8b")
    h, i, kv = 4096, 14336, 8 * 128
    # norm inputs 2h, matmul inputs 2h, q h, k and v 2 kv, attention output h, gate and up 2i, their product i
    assert saved(layer_operators(spec, 0)) == 2 * h + 2 * h + h + 2 * kv + h + 3 * i


def test_qk_norm_keeps_its_own_input_too() -> None:
    spec = builtin_model("qwen3-8b")
    operators = {op.name: op for op in layer_operators(spec, 0)}
    assert operators["qk_norm"].saved_width == (32 + 8) * 128
    assert operators["qk_norm"].parameters == 256


def test_moe_layer_counts_the_router_input_once() -> None:
    spec = builtin_model("deepseek-v3")
    operators = layer_operators(spec, 1)
    keepers = [op.name for op in operators if op.saved_from == "mlp_norm"]
    assert keepers == ["router"]
    assert {op.name: op.saved_width for op in operators}["experts_up"] == 8 * 7168


def test_sandwich_and_post_norm_layers_keep_branch_outputs() -> None:
    gemma = {op.name: op for op in layer_operators(builtin_model("gemma-2-27b"), 0)}
    assert gemma["attention_post_norm"].saved_from == "output_projection"
    assert gemma["mlp_post_norm"].saved_from == "down"
    olmo = {op.name: op for op in layer_operators(builtin_model("olmo-2-13b"), 0)}
    assert "attention_norm" not in olmo
    assert olmo["qkv"].saved_from == ""
    assert olmo["attention_post_norm"].saved_width == 5120


def test_parallel_residual_keeps_the_layer_input_once() -> None:
    operators = layer_operators(builtin_model("gpt-neox-20b"), 0)
    from_input = [op.saved_width for op in operators if op.op_class == "norm"]
    assert from_input == [6144, 0]


def test_alibi_and_learned_positions_run_no_rope() -> None:
    for name in ("bloom-176b", "gpt3-175b", "mpt-30b", "opt-66b"):
        assert "rope" not in {op.op_class for op in layer_operators(builtin_model(name), 0)}
    partial = {op.name: op for op in layer_operators(builtin_model("gpt-neox-20b"), 0)}
    assert partial["rope"].read_width == 2 * 64 * 24


@pytest.mark.parametrize("name", builtin_models())
def test_operator_lists_are_well_formed(name: str) -> None:
    for operators in every_operator_list(name):
        names = [op.name for op in operators]
        assert len(set(names)) == len(names)
        for op in operators:
            assert 0 <= op.replicated_parameters <= op.parameters
            assert op.saved_from == "" or op.saved_from in names
            if op.shard in ("replicated", "sequence"):
                assert op.replicated_parameters == op.parameters
            if op.op_class in ("matmul", "grouped_matmul"):
                assert op.in_features > 0
                assert op.out_features > 0
                assert op.read_width == op.in_features * op.tokens_per_token


def test_tied_head_has_no_parameters_but_runs() -> None:
    head = {op.name: op for op in head_operators(builtin_model("gpt3-175b"))}
    assert head["lm_head"].parameters == 0
    assert head["lm_head"].out_features == 51200
    assert head["cross_entropy"].saved_bytes_per_element == 4


def test_recompute_regions_free_what_they_make() -> None:
    operators = layer_operators(builtin_model("gpt3-175b"), 0)
    assert freed_operators(operators, ["attention_core"]) == frozenset()
    assert freed_operators(operators, ["norm"]) == {"qkv", "up"}
    assert freed_operators(operators, ["activation"]) == {"down"}
    assert freed_operators(operators, ["mlp"]) == {"activation", "down"}
    assert region(operators, "mlp") == {"up", "activation", "down"}


def test_recomputing_experts_keeps_their_input_and_branch_output() -> None:
    operators = layer_operators(builtin_model("deepseek-v3"), 1)
    freed = freed_operators(operators, ["moe"])
    assert "router" not in freed
    assert {"experts_up", "experts_activation", "experts_down", "shared_down"} <= freed


def test_recomputing_latent_up_projections_keeps_the_latents() -> None:
    """Queries, keys and values go: 128 heads of 192 + 192 + 128 a token; latents of 1,536 and 512 stay."""
    operators = layer_operators(builtin_model("deepseek-v3"), 1)
    assert region(operators, "mla_up_proj") == {"q_up", "kv_up", "rope"}
    assert freed_operators(operators, ["mla_up_proj"]) == {"attention_core"}
    kept = {op.name: op.saved_width for op in operators}
    assert (kept["attention_core"], kept["q_up"], kept["kv_up"]) == (128 * (192 + 192 + 128), 1536, 512)
    grouped = layer_operators(builtin_model("mixtral-8x7b"), 0)
    assert region(grouped, "mla_up_proj") == frozenset()
    assert freed_operators(grouped, ["mla_up_proj"]) == frozenset()


def test_attention_context_counts_windows_exactly() -> None:
    for length, window in ((7, 3), (5, 5), (4, 9), (6, 1)):
        seen = [min(token + 1, window) for token in range(length)]
        assert attention_context(length, window, causal=True) == pytest.approx(sum(seen) / length)
    assert attention_context(10, None, causal=True) == 5.5
    assert attention_context(10, 4, causal=False) == 4


def test_gpt_flops_equal_the_paper() -> None:
    # Korthikanti et al., equation 8: 72 B L s h^2 (1 + s / 6h + v / 12 h L), full attention.
    spec = builtin_model("gpt-1t")
    h, layers, s, v = 25600, 128, 2048, 51200
    expected = 72 * layers * h * h * (1 + s / (6 * h) + v / (12 * h * layers))
    assert model_flops_per_token(spec, s, causal=False) == pytest.approx(expected, rel=1e-12)


def test_flops_are_six_n_active_plus_attention() -> None:
    spec = builtin_model("mixtral-8x7b")
    matmuls = 0.0
    for op in (*layer_operators(spec, 0), *head_operators(spec)):
        times = spec.num_layers if op.module != "head" else 1
        if op.op_class in ("matmul", "grouped_matmul", "router"):
            matmuls += times * op.in_features * op.out_features * op.tokens_per_token
    attention = 3 * 32 * 2 * 2048.5 * 32 * 256
    assert model_flops_per_token(spec, 4096) == pytest.approx(6 * matmuls + attention, rel=1e-12)


def test_mtp_adds_a_layer_a_projection_and_the_head() -> None:
    spec = builtin_model("deepseek-v3")
    without = spec.model_copy(update={"mtp": None})
    extra = model_flops_per_token(spec, 4096) - model_flops_per_token(without, 4096)
    layer = sum(forward_flops(op, 4096) for op in layer_operators(spec, 1))
    assert extra == pytest.approx(3 * (layer + 2 * 7168 * 129280 + 2 * 2 * 7168 * 7168))


def test_vision_tower_flops_respect_windows() -> None:
    spec = builtin_model("qwen2.5-vl-7b")
    assert spec.vision is not None
    assert (spec.vision.num_windowed_layers, spec.vision.window_patches) == (28, 64)
    unlimited = spec.model_copy(update={"vision": spec.vision.model_copy(update={"num_windowed_layers": 0})})
    assert 0 < vision_flops_per_image(spec) < vision_flops_per_image(unlimited)
    assert vision_flops_per_image(builtin_model("llama-3.1-8b")) == 0


def test_layer_without_norms_or_mlp_is_possible() -> None:
    attention = AttentionSpec(num_heads=4, num_kv_heads=4, head_dim=8, v_head_dim=8)
    bare = LayerSpec(attention=attention, num_norms=0)
    with_mlp = LayerSpec(attention=attention, mlp=MlpSpec(intermediate_size=64, gated=False), num_norms=1)
    spec = ModelSpec(
        name="bare",
        family="custom",
        hidden_size=32,
        vocab_size=10,
        layer_kinds=(bare, with_mlp),
        layer_runs=(LayerRun(kind=0, count=1), LayerRun(kind=1, count=1)),
        max_sequence_length=8,
    )
    assert total_parameters(spec) == 2 * 320 + 32 + 4 * 32 * 32 * 2 + 32 + 2 * 32 * 64
