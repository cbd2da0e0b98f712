"""A row of a table becomes a model, a cluster and a strategy; what cannot is refused with the reason."""

from __future__ import annotations

import pytest

from planner.backends.nanotron import physics as nanotron
from planner.evidence.runs.flavours import DEFAULT, MEGATRON_CI, NANOTRON, NEMO, TORCHTITAN, Flavour, flavour_of
from planner.evidence.runs.row_cluster import cluster_of_row
from planner.evidence.runs.row_flavour import flavour_of_row
from planner.evidence.runs.row_model import model_of_row
from planner.evidence.runs.row_strategy import (
    arithmetic_of_row,
    chunk_layers_of_row,
    degrees_of_row,
    strategy_of_row,
    traits_of_row,
    workload_of_row,
)
from planner.evidence.runs.sources import source_group
from planner.evidence.runs.truth import TruthRow
from planner.evidence.runs.unmapped import RowUnmapped
from planner.model.builtin import builtin_model
from planner.model.parameters import total_parameters
from planner.model.spec import ModelSpec
from planner.predict.physics.physics import Physics
from planner.question.routing import EVEN
from planner.strategy.strategy import Strategy
from tests.accuracy_rows import rows_of


def row_of(**change: str) -> TruthRow:
    return rows_of(change)[0]


def flavour(row: TruthRow) -> Flavour:
    return flavour_of(row.source, row.zero_or_fsdp)


def model_of(row: TruthRow) -> ModelSpec:
    return model_of_row(row, flavour(row))


def strategy_of(row: TruthRow) -> Strategy:
    return strategy_of_row(
        row, degrees_of_row(row, flavour(row), model_of(row).num_layers), model_of(row), flavour(row)
    )


def test_columns_alone_describe_llama_to_the_last_parameter() -> None:
    assert total_parameters(model_of(row_of())) == total_parameters(builtin_model("llama-3.1-8b"))


def test_the_stated_size_decides_between_gated_and_plain_feed_forward() -> None:
    """Seven billion parameters at h 4096 and ffn 16384 are only possible with a plain MLP, whatever the name."""
    shape = {"hidden": "4096", "ffn_hidden": "16384", "kv_heads": "", "vocab": "50368", "model": "house-model"}
    plain = model_of(row_of(**shape, params_b="6.65"))
    gated = model_of(row_of(**shape, params_b="9.0"))
    mlps = [model.layer_kinds[0].mlp for model in (plain, gated)]
    assert [mlp.gated for mlp in mlps if mlp is not None] == [False, True]


def test_columns_that_miss_the_stated_size_are_refused() -> None:
    with pytest.raises(RowUnmapped, match="another size"):
        model_of(row_of(params_b="70"))


def test_experts_of_a_known_name_come_from_the_built_in_model() -> None:
    row = row_of(model="deepseek-v3", layers="61", hidden="7168", experts="256", topk="8", heads="128", kv_heads="128")
    assert model_of(row).layer_kinds == builtin_model("deepseek-v3").layer_kinds


def test_a_proxy_keeps_the_first_layers() -> None:
    short = model_of(row_of(model="deepseek-v3", layers="5", hidden="7168", experts="256", topk="8"))
    whole = builtin_model("deepseek-v3")
    assert short.layer_kind_sequence() == whole.layer_kind_sequence()[:5]


def test_megatron_tests_use_megatron_defaults_for_width_and_vocabulary() -> None:
    row = row_of(
        source="github:NVIDIA/Megatron-LM:tests/functional_tests/x.json", model="gpt:x",
        ffn_hidden="", vocab="", params_b="",
    )  # fmt: skip
    model = model_of(row)
    assert flavour(row) is MEGATRON_CI
    assert (model.vocab_size, model.layer_kinds[0].mlp and model.layer_kinds[0].mlp.intermediate_size) == (50432, 16384)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"layers": "", "model": "house-model"}, r"not described \(layers\)"),
        ({"model": "t5-11b"}, "encoder-decoder"),
        ({"model": "nemotron-3-nano"}, "state-space"),
        ({"experts": "8"}, "experts a token reaches"),
        ({"heads": "31", "kv_heads": "31"}, "no possible model"),
    ],
)
def test_models_that_cannot_be_known_are_refused(change: dict[str, str], reason: str) -> None:
    with pytest.raises(RowUnmapped, match=reason):
        model_of(row_of(**change))


def test_latent_rank_flags_are_not_finetuning() -> None:
    assert model_of(row_of(notes="q-lora-rank=512")).num_layers == 32


@pytest.mark.parametrize(
    ("device", "link", "devices", "nics", "gigabit"),
    [
        ("H100-SXM-80GB", "8x400G IB (EOS)", 16, 8, 400),
        ("H100-SXM-80GB", "EFA (AWS p5)", 16, 32, 100),
        ("A100-SXM-80GB", "1600 Gbps RoCE per node", 16, 8, 200),
        ("A100-SXM-80GB", "4x100G Omni-Path", 16, 4, 100),
        ("H100-SXM-80GB", "400 Gb/s RDMA per GPU", 16, 8, 400),
        ("H200-SXM-141GB", "1.6 Tb/s", 16, 8, 200),
        ("H100-SXM-80GB", "", 16, 8, 400),
    ],
)
def test_nics_are_what_the_row_says(device: str, link: str, devices: int, nics: int, gigabit: int) -> None:
    cluster = cluster_of_row(row_of(device=device, inter_node_link=link), devices)
    pool = cluster.pools[0]
    assert cluster.num_devices == devices
    assert (pool.nics_per_node, pool.nic_bandwidth_bytes_per_s) == (nics, gigabit * 1e9 / 8)


def test_part_of_a_node_and_racks_of_sixty_four() -> None:
    assert cluster_of_row(row_of(), 4).num_devices == 4
    racks = cluster_of_row(row_of(device="GB200"), 256).pools[0]
    assert (racks.scale_up.domain_size, racks.num_devices) == (64, 256)
    assert cluster_of_row(row_of(device="GB200"), 72).pools[0].scale_up.domain_size == 72


@pytest.mark.parametrize(("device", "devices"), [("Abacus 3000", 8), ("H100-SXM-80GB", 12)])
def test_unknown_devices_and_impossible_counts_are_refused(device: str, devices: int) -> None:
    with pytest.raises(RowUnmapped):
        cluster_of_row(row_of(device=device), devices)


def test_what_a_row_leaves_open_takes_documented_defaults() -> None:
    strategy = strategy_of(row_of(mbs=""))
    assert (strategy.dp, strategy.num_microbatches, strategy.micro_batch_size) == (4, 8, 1)
    assert (strategy.sp, strategy.zero_stage, strategy.schedule, strategy.recompute) == (True, 1, "1f1b", "none")


@pytest.mark.parametrize(
    ("words", "devices", "nodes", "expected"),
    [
        ("zero0", "16", "2", (1, 4, 0)),
        ("distributed-optimizer", "16", "2", (1, 4, 1)),
        ("fsdp-shard_grad_op", "16", "2", (1, 4, 2)),
        ("fsdp2-2", "16", "2", (2, 2, 3)),
        ("hsdp", "16", "2", (2, 2, 3)),
        ("zero1 (shard group 2)", "16", "2", (2, 2, 1)),
        ("zero3", "16", "2", (1, 4, 3)),
        ("ddp", "16", "2", (1, 4, 0)),
    ],
)
def test_sharding_words(words: str, devices: str, nodes: str, expected: tuple[int, int, int]) -> None:
    strategy = strategy_of(row_of(zero_or_fsdp=words, num_devices=devices, nodes=nodes))
    assert (strategy.dp_replicate, strategy.dp_shard, strategy.zero_stage) == expected


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"dp": "3"}, "do not multiply"),
        ({"num_devices": "15"}, "do not multiply"),
        ({"num_devices": ""}, "number of devices"),
        ({"tp": "", "pp": ""}, "no parallel degree"),
        ({"gbs": ""}, "batch size is not stated"),
        ({"gbs": "30"}, "data-parallel ranks"),
        ({"mbs": "3"}, "micro-batches"),
    ],
)
def test_contradictory_degrees_are_refused_not_repaired(change: dict[str, str], reason: str) -> None:
    row = row_of(**change)
    with pytest.raises(RowUnmapped, match=reason):
        degrees_of_row(row, flavour(row), 32)


@pytest.mark.parametrize(
    ("precision", "expected"), [("mxfp8", "fp8"), ("fp8-hybrid/tensorwise", "fp8"), ("fp16", "fp16")]
)
def test_precisions(precision: str, expected: str) -> None:
    assert workload_of_row(row_of(precision=precision), NANOTRON).precision == expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"precision": "nvfp4"}, "fp4"),
        ({"precision": "fp32"}, "fp32"),
        ({"precision": "TF32"}, "tf32"),
        ({"precision": ""}, "bf16"),
        ({"precision": "", "device": "V100-SXM2-32GB"}, "fp16"),
        ({"precision": "", "source": "github:mlcommons/training_results_v4.0"}, "fp8"),
    ],
)
def test_arithmetic(change: dict[str, str], expected: str) -> None:
    assert arithmetic_of_row(row_of(**change)) == expected


def test_unknown_precisions_are_refused() -> None:
    with pytest.raises(RowUnmapped, match="precision"):
        workload_of_row(row_of(precision="posit16"), NANOTRON)


def test_a_compiler_fuses_and_adapters_freeze() -> None:
    row = row_of(source="github:pytorch/torchtitan:x", notes="FSDP eager")
    compiled = row_of(source="github:pytorch/torchtitan:x", notes="FSDP compile")
    assert "norm" in traits_of_row(row, TORCHTITAN).unfused
    assert not traits_of_row(compiled, TORCHTITAN).unfused
    assert workload_of_row(row_of(model="llama2_70b_lora"), NEMO).trained.kind == "lora"
    assert not workload_of_row(row_of(notes="q-lora-rank=512"), NEMO).trained.adapters


def test_the_sequence_follows_from_rate_step_devices_and_batch() -> None:
    """8,192 tokens x 32 samples / (2.5 s x 16 devices) = 6,553.6 tokens/s each."""
    assert row_of(seq_len="", tokens_per_s_per_device="6553.6").sequence_length == 8192
    assert row_of(seq_len="", tokens_per_s_per_device="6200").sequence_length is None
    assert row_of(seq_len="").sequence_length is None


def test_jax_shards_over_all_devices_and_takes_its_batch_at_once() -> None:
    row = row_of(source="github:AI-Hypercomputer/maxtext:README.md", device="TPU-v5p", tp="", pp="", mbs="")
    strategy = strategy_of(row)
    assert (strategy.dp_shard, strategy.zero_stage, strategy.micro_batch_size) == (16, 3, 2)


def test_chunks_that_count_the_ends_become_chunks_of_layers() -> None:
    row = row_of(layers="30", params_b="", vpp="16")
    assert degrees_of_row(row, flavour(row), 30).vpp == 15


def test_blank_heads_are_128_wide() -> None:
    heads = model_of(row_of(heads="", kv_heads="", params_b="")).layer_kinds[0].attention.num_heads
    assert heads == 4096 // 128


def test_early_nemo_left_experts_tensor_parallelism_to_megatron() -> None:
    """Mixtral on 16 devices, tp 2 pp 2 ep 4: folded experts take tp, later recipes one."""
    shape = {"model": "mixtral-8x7b", "layers": "32", "hidden": "4096", "ep": "4", "params_b": "", "precision": "bf16"}
    source = "github:NVIDIA/dgxc-benchmarking:x"
    etp = []
    for notes in ("release v24.11; table", "release v25.02; table", "release v25.05; table"):
        row = row_of(**shape, source=source, notes=notes)
        found, model = flavour_of_row(row), model_of(row)
        etp.append(strategy_of_row(row, degrees_of_row(row, found, model.num_layers), model, found).etp)
    assert etp == [2, 2, 1]


def test_layers_are_dealt_evenly_with_short_ends_where_that_is_even() -> None:
    model = model_of(row_of(layers="30", params_b=""))
    assert chunk_layers_of_row(model, Strategy(pp=4), MEGATRON_CI) == (7, 8, 8, 7)
    assert chunk_layers_of_row(model, Strategy(pp=7), MEGATRON_CI) == (5, 5, 4, 4, 4, 4, 4)


def test_nanotron_balances_compute_so_that_a_large_head_shortens_the_last_stage() -> None:
    """16 layers and a head that weighs four of them: 20 units, so the first of two stages stops at 10.

    The memory that its first stage reports is that of 10 layers (HF Ultra-Scale sweep, 1.34B on two stages).
    """
    shape = {"layers": "16", "hidden": "2048", "ffn_hidden": "8192", "kv_heads": "32", "vocab": "131072"}
    model = model_of(row_of(**shape, params_b="", model="nanotron-llama"))
    assert chunk_layers_of_row(model, Strategy(pp=2), NANOTRON) == (10, 6)
    assert chunk_layers_of_row(model, Strategy(pp=4), NANOTRON) == (5, 5, 5, 1)


def test_nanotron_gives_the_first_of_eight_stages_five_llama_layers() -> None:
    """As its documentation shows for Llama 3 8B (docs of the 3D-parallelism tutorial)."""
    layers = chunk_layers_of_row(model_of(row_of()), Strategy(pp=8), NANOTRON)
    assert (layers[0], sum(layers)) == (5, 32)


def test_more_chunks_than_layers_is_refused() -> None:
    with pytest.raises(RowUnmapped, match="more model chunks"):
        chunk_layers_of_row(model_of(row_of()), Strategy(pp=8, vpp=5, schedule="interleaved"), NANOTRON)


@pytest.mark.parametrize(
    ("source", "group"),
    [
        ("github:NVIDIA/dgxc-benchmarking:llama3.1/README.md@741c886", "dgxc-benchmarking"),
        ("arXiv:2104.04473 Table 2, github file-index id 1", "Narayanan et al. (SC'21)"),
        ("github:new/place:README.md@1", "new/place"),
        ("arXiv:2999.00001 Table 3", "arXiv:2999.00001"),
        ("https://example.org/a/b.html", "example.org"),
        ("somewhere else", "somewhere"),
    ],
)
def test_sources_have_readable_groups(source: str, group: str) -> None:
    assert source_group(source) == group


@pytest.mark.parametrize(("part", "policy"), [("single", "none"), ("multi", "full")])
def test_vtrains_one_node_runs_kept_their_activations(part: str, policy: str) -> None:
    """Its column is a setting of the simulator; runs on several nodes are taken at their word."""
    source = f"github:VIA-Research/vTrain:data/ground_truth_{part}.csv@f8dda8473a"
    assert strategy_of(row_of(source=source, recompute="full")).recompute == policy


def test_deepspeeds_megatron_is_not_nvidias() -> None:
    sources = ("arXiv:2201.11990 (MT-NLG)", "github:bigscience-workshop/bigscience", "arXiv:2104.04473 Table 1")
    names = [flavour_of(source, "").traits.name for source in sources]
    assert names == ["megatron-deepspeed-pipeline", "megatron-deepspeed-pipeline", "megatron-2021"]


@pytest.mark.parametrize(
    ("passed", "pp", "traits"),
    [
        ("True", "1", nanotron.NANOTRON_MEETING),
        ("True", "2", nanotron.NANOTRON_MEETING),
        ("False", "1", nanotron.NANOTRON),
        ("False", "2", nanotron.NANOTRON_STALLING),
    ],
)
def test_the_two_passes_of_a_sweep_behave_each_in_its_way(passed: str, pp: str, traits: Physics) -> None:
    row = row_of(source="github:x/huggingface_data/bench.csv", notes=f"batch_accum=16; after_pp_fix={passed};", pp=pp)
    assert flavour_of_row(row).traits is traits


def test_notes_name_dispatcher_routing_overlap_and_replayed_modules() -> None:
    row = row_of(model="qwen3-235b-a22b", layers="94", hidden="4096", params_b="", num_devices="256", gbs="2048",
                 mbs="1", tp="2", pp="8", vpp="4", ep="32", dp="16", recompute="norm, activation",
                 notes="DeepEP dispatcher; EP overlap; ETP=1; router force-balanced")  # fmt: skip
    strategy = strategy_of(row)
    assert (strategy.overlap_ep, strategy.recompute_modules, strategy.etp) == (True, ("norm", "activation"), 1)
    assert traits_of_row(row, flavour(row)).dispatch == "node"
    assert workload_of_row(row, flavour(row)).routing == EVEN
    plain = row_of(notes="A2A dispatcher")
    assert traits_of_row(plain, flavour(plain)).dispatch == "expert"
    assert workload_of_row(plain, flavour(plain)).routing is None


def test_dual_pipe_is_its_v_form() -> None:
    row = row_of(num_devices="8", pp="8", tp="1", dp="1", gbs="32", mbs="1", vpp="", notes="schedule DualPipe")
    assert (strategy_of(row).schedule, strategy_of(row).vpp) == ("dualpipev", 2)


def test_the_stated_node_and_slot_decide_the_links_of_a_row() -> None:
    v100 = {"device": "V100-SXM2-16GB", "num_devices": "8"}
    four, eight = (
        cluster_of_row(row_of(**v100, intra_node_link=link), 8).pools[0]
        for link in ("NVLink2 4 GPU", "NVLink2 8 GPU (cube mesh)")
    )
    assert (four.devices_per_node, eight.devices_per_node) == (4, 8)
    assert eight.scale_up.domain_size == 8
    rtx = {"device": "RTX-3090-24GB", "num_devices": "2"}
    narrow, wide, third = (
        cluster_of_row(row_of(**rtx, intra_node_link=link), 2).pools[0].scale_up.bandwidth_bytes_per_s
        for link in ("PCIe, x16+x4 slots", "PCIe 4.0 x16, no P2P", "PCIe 3.0 x16")
    )
    assert narrow == pytest.approx(4 * 1.969e9 / 2)  # through the host's memory
    assert wide == pytest.approx(4 * narrow)
    assert third == pytest.approx(wide / 2, rel=0.01)


def test_quantised_weights_are_gathered_as_they_are_stored() -> None:
    lora = workload_of_row(row_of(notes="LoRA r=16 on all linear layers; HF Trainer"), NEMO)
    qlora = workload_of_row(row_of(notes="QLoRA nf4 r=16 on all linear layers; bitsandbytes; HF Trainer"), NEMO)
    assert lora.trained.stored_bytes == 2.0
    assert qlora.trained.stored_bytes == pytest.approx(0.516, abs=0.001)


def test_dropped_tokens_leave_no_expert_more_than_its_share() -> None:
    notes = "MCore; token-dropping capacity factor 1"
    assert workload_of_row(row_of(notes=notes), DEFAULT).routing == EVEN
    assert workload_of_row(row_of(notes="MCore"), DEFAULT).routing is None
