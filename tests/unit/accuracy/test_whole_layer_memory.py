"""The memory of layers that run whole, on measured rows of fine-tuning (fms-acceleration, A100, allocated GiB)."""

from __future__ import annotations

import pytest

from planner.evidence.runs.prediction import Inputs, map_rows, predict_rows, predict_runs
from planner.question.factors import Factors
from tests.accuracy_rows import rows_of

MISTRAL = {
    "model": "mistral-7b", "params_b": "7.242", "vocab": "32000", "device": "A100-80GB", "seq_len": "4096",
    "recompute": "full", "precision": "bf16", "tp": "1", "pp": "1", "inter_node_link": "", "step_time_s": "5",
}  # fmt: skip
LLAMA = {**MISTRAL, "model": "llama3-8b", "params_b": "8.03", "vocab": "128256"}
FULL = "full finetune; HF SFTTrainer (FlashAttention-2); {}; pure bf16 weights+grads+states; mem: torch peak allocated"
LORA = "LoRA r=16 on q,k,v,o; HF SFTTrainer (FlashAttention-2); {}; mem: torch peak allocated"
NF4 = "QLoRA r=16 on q,k,v,o with frozen base NF4-4bit; HF SFTTrainer (FlashAttention-2); {}; mem: torch peak allocated"
NONE, FOAK, LIGER = "plugin=none", "plugin=foak-fast-kernels", "plugin=accelerated-peft-bnb-foak-liger"


@pytest.mark.parametrize(
    ("model", "devices", "micro", "notes", "measured_gib"),
    [
        (MISTRAL, 1, 4, FULL.format(NONE), 67.46),
        (MISTRAL, 4, 4, FULL.format(FOAK), 33.74),
        (LLAMA, 2, 8, FULL.format(LIGER), 74.80),
        (LLAMA, 4, 16, FULL.format(LIGER), 56.17),
        (LLAMA, 4, 8, FULL.format(FOAK), 64.22),
        (MISTRAL, 1, 8, LORA.format(NONE), 36.08),
        (LLAMA, 1, 8, LORA.format(FOAK), 54.96),
        (LLAMA, 4, 8, LORA.format(LIGER), 29.81),
        (LLAMA, 1, 8, NF4.format(LIGER), 21.36),
        (MISTRAL, 1, 8, NF4.format("plugin=baseline-peft-bnb"), 34.46),
        (MISTRAL, 1, 8, NF4.format("plugin=accelerated-peft-bnb"), 26.46),
    ],
)
def test_measured_peaks_are_within_4_percent(
    model: dict[str, str], devices: int, micro: int, notes: str, measured_gib: float
) -> None:
    sharding = "fsdp-full_shard" if devices > 1 else "none"
    change = {"num_devices": str(devices), "dp": str(devices), "mbs": str(micro), "gbs": str(micro * devices)}
    (found,), _ = predict_rows(rows_of({**model, **change, "notes": notes, "zero_or_fsdp": sharding}))
    assert found.peak_memory_bytes / 2**30 == pytest.approx(measured_gib, rel=0.04)


def test_adapters_and_quantised_weights_cost_time_beside_the_frozen_model() -> None:
    change = {"num_devices": "1", "dp": "1", "mbs": "4", "gbs": "4", "zero_or_fsdp": "none"}
    plain = NONE.replace("plugin", "plug")
    lora, qlora, fused = predict_rows(
        rows_of(
            *(
                {**MISTRAL, **change, "notes": each}
                for each in (LORA.format(plain), NF4.format(plain), LORA.format(FOAK))
            )
        )
    )[0]
    assert qlora.step_time_s > lora.step_time_s > fused.step_time_s


def test_a_calibrated_host_overhead_lengthens_runs_of_adapters_too() -> None:
    change = {"num_devices": "1", "dp": "1", "mbs": "1", "gbs": "8", "zero_or_fsdp": "none"}
    runs, _ = map_rows(rows_of({**MISTRAL, **change, "notes": LORA.format(FOAK)}))
    (plain,), _ = predict_runs(runs)
    (delayed,), _ = predict_runs(runs, Inputs(factors=Factors(host_overhead_s=0.01)))
    assert delayed.step_time_s == pytest.approx(plain.step_time_s + 8 * 0.01)


TINY = {
    "model": "tinyllama-1.1b", "params_b": "1.1", "layers": "22", "hidden": "2048", "ffn_hidden": "5632",
    "heads": "32", "kv_heads": "4", "vocab": "32000", "device": "A100-SXM-40GB", "seq_len": "2048", "mbs": "4",
    "recompute": "none", "precision": "bf16", "tp": "1", "pp": "1", "inter_node_link": "", "step_time_s": "1",
    "source": "github:Lightning-AI/litgpt:extensions/thunder/README.md",
}  # fmt: skip
ONE = {"num_devices": "1", "dp": "1", "gbs": "4", "zero_or_fsdp": "none"}
EIGHT = {"num_devices": "8", "dp": "8", "gbs": "32", "zero_or_fsdp": "ddp"}


def peaks_gib(*rows: dict[str, str]) -> list[float]:
    return [found.peak_memory_bytes / 2**30 for found in predict_rows(rows_of(*rows))[0]]


def test_buckets_of_plain_data_parallelism_are_copies_of_the_gradients_and_thunder_has_none() -> None:
    eager, data_parallel, alone, thunder = peaks_gib(
        {**TINY, **ONE, "notes": "1 GPU eager; bf16-true"},
        {**TINY, **EIGHT, "notes": "DDP eager; bf16-true"},
        {**TINY, **ONE, "notes": "1 GPU thunder; bf16-true"},
        {**TINY, **EIGHT, "notes": "DDP thunder; bf16-true"},
    )
    # Measured: 29.8 and 32.0 GiB; two bytes a parameter are 2.05 GiB.
    assert data_parallel - eager == pytest.approx(2.0 * 1.1e9 / 2**30, rel=0.01)
    assert thunder == pytest.approx(alone)


def test_frozen_matrices_keep_no_input_except_in_bitsandbytes() -> None:
    lora = "LoRA r=8 {} single GPU, bf16-true, quantization {}"
    few, all_of_them = peaks_gib(
        {**TINY, **ONE, "notes": lora.format("(q,v)", "None")},
        {**TINY, **ONE, "notes": lora.format("all linear layers", "None")},
    )
    tokens, layers = 4 * 2048, 22
    inputs_gib = 2.0 * tokens * layers * (2048 + 5632) / 2**30
    assert all_of_them - few == pytest.approx(inputs_gib, rel=0.05)
    quantised = peaks_gib(
        {**TINY, **ONE, "notes": lora.format("(q,v)", "bnb.nf4")},
        {**TINY, **ONE, "notes": lora.format("all linear layers", "bnb.nf4")},
    )
    assert quantised[1] - quantised[0] < 0.2


def test_ends_trained_beside_adapters_cost_eight_bytes_a_parameter() -> None:
    frozen, trained = peaks_gib(
        {**MISTRAL, **ONE, "mbs": "1", "gbs": "1", "notes": LORA.format(NONE)},
        {**MISTRAL, **ONE, "mbs": "1", "gbs": "1", "notes": f"{LORA.format(NONE)}; embedding and output layer trained"},
    )
    assert trained - frozen == pytest.approx(8.0 * 2 * 32000 * 4096 / 2**30, rel=0.01)


def test_paged_moments_are_outside_of_torchs_counter() -> None:
    full = "full finetune; torchtune; pure bf16; optimizer in backward; {}"
    paged, eight_bit = peaks_gib(
        {**MISTRAL, **ONE, "mbs": "1", "gbs": "1", "notes": full.format("PagedAdamW8bit")},
        {**MISTRAL, **ONE, "mbs": "1", "gbs": "1", "notes": full.format("AdamW8bit")},
    )
    assert eight_bit - paged == pytest.approx(2.0 * 7.242e9 / 2**30, rel=0.01)
