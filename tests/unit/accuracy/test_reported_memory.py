"""What a pool holds beside tensors in use, and what a compiler drops: measured rows, as their sources print them."""

from __future__ import annotations

import pytest

from planner.evidence.runs.prediction import map_rows, predict_rows
from planner.evidence.runs.reported_memory import RESERVED_PER_ALLOCATED
from tests.accuracy_rows import rows_of

LLAMA = {
    "model": "llama3-8b", "params_b": "8.03", "layers": "32", "hidden": "4096", "ffn_hidden": "14336", "heads": "32",
    "kv_heads": "8", "vocab": "128256", "device": "H100-SXM-80GB", "num_devices": "8", "nodes": "1", "seq_len": "8192",
    "gbs": "8", "mbs": "1", "tp": "1", "sp": "0", "cp": "1", "pp": "1", "vpp": "1", "ep": "1", "dp": "8",
    "zero_or_fsdp": "fsdp2", "recompute": "selective", "precision": "bf16", "inter_node_link": "", "step_time_s": "1",
}  # fmt: skip
INTERN = {
    **LLAMA, "model": "internlm-7b", "params_b": "7.32", "ffn_hidden": "11008", "kv_heads": "32", "vocab": "103168",
    "device": "A800-80GB", "num_devices": "6", "seq_len": "2048", "gbs": "24", "dp": "6", "recompute": "full",
    "zero_or_fsdp": "zero1",
}  # fmt: skip


def peak_gib(**change: str) -> float:
    (found,), _ = predict_rows(rows_of({**LLAMA, **change}))
    return found.peak_memory_bytes / 2**30


def test_a_compiler_drops_what_no_backward_pass_reads() -> None:
    """Measured: 47.6 GiB reserved (torchtitan 0.0.2, compiled layers, eager loss)."""
    words = "torchtitan Llama3-8B, {}, FSDP2, per-op SAC, max reserved; torch 2.7.0a0"
    eager, compiled = peak_gib(notes=words.format("eager")), peak_gib(notes=words.format("torch.compile"))
    dropped_gib = 32 * 8192 * 4096 * 2.0 * RESERVED_PER_ALLOCATED / 2**30
    assert eager - compiled == pytest.approx(dropped_gib, rel=0.15)
    assert compiled == pytest.approx(47.6, rel=0.04)


@pytest.mark.parametrize(
    ("release", "fused"), [("torch 2.7.0a0", False), ("torch 2.9.0.dev20250811", True), ("torch 2.10.0", True)]
)
def test_a_compiled_loss_keeps_16_bit_logits_alone(release: str, *, fused: bool) -> None:
    notes = f"torchtitan Llama3-8B, torch.compile, FSDP2, max reserved; {release}"
    assert (peak_gib(notes=notes) < 41.0) == fused  # measured with a compiled loss: 39.1 GiB on MI300X


def test_eager_runs_have_no_compiled_loss() -> None:
    eager = "torchtitan Llama3-8B, eager, no torch.compile; not compiled; max reserved; torch {}"
    assert peak_gib(notes=eager.format("2.9.0")) == peak_gib(notes=eager.format("2.7.0"))


def test_blocks_of_the_optimizer_step_stay_in_the_pool_beside_activations() -> None:
    """InternEvo flattens gradients in 16 bit and copies them to fp32: six bytes a parameter of this rank's part."""
    (found,), _ = predict_rows(rows_of({**INTERN, "source": "github:InternLM/InternEvo", "notes": "nvidia-smi"}))
    (run,), _ = map_rows(rows_of({**INTERN, "source": "github:InternLM/InternEvo", "notes": "nvidia-smi"}))
    more = found.peak_memory_bytes - RESERVED_PER_ALLOCATED * found.total_memory_bytes
    outside = -more + RESERVED_PER_ALLOCATED * 6.0 * 7.32e9 / 6
    assert run.flavour.step_bytes == 6.0
    assert 0 <= outside < 1e9


def test_what_a_launcher_says_goes_before_a_column_known_to_be_wrong() -> None:
    """bigscience's table of its 1.3B model has no ZeRO column; its launcher sets stage 1."""
    source = "github:bigscience-workshop/bigscience:experiments/{}"
    row = {**INTERN, "zero_or_fsdp": "ddp", "notes": ""}
    (tr3, other), _ = map_rows(
        rows_of({**row, "source": source.format("tr3m-1B3.md")}, {**row, "source": source.format("gpt2.md")})
    )
    assert (tr3.strategy.zero_stage, other.strategy.zero_stage) == (1, 0)


def test_a_narrow_slot_holds_up_16_bit_weights_and_not_quantised_ones() -> None:
    """Measured, two RTX 3090 of which one has four lanes: 5.07 and 2.11 s (fsdp_qlora, Llama 2 7B, 512 tokens)."""
    change = {
        "model": "llama2-7b", "params_b": "6.738", "ffn_hidden": "11008", "kv_heads": "32", "vocab": "32000",
        "device": "RTX-3090-24GB", "num_devices": "2", "seq_len": "512", "gbs": "2", "dp": "2",
        "zero_or_fsdp": "fsdp-full_shard", "recompute": "full", "intra_node_link": "PCIe, x16+x4 slots",
    }  # fmt: skip
    whole, quantised = predict_rows(
        rows_of(
            {**LLAMA, **change, "notes": "LoRA, rank 64 on all linear layers; fsdp_qlora"},
            {**LLAMA, **change, "notes": "QLoRA NF4 (bitsandbytes/HQQ), rank 64 on all linear layers; fsdp_qlora"},
        )
    )[0]
    assert whole.step_time_s == pytest.approx(5.07, rel=0.1)
    assert quantised.step_time_s == pytest.approx(2.11, rel=0.25)
