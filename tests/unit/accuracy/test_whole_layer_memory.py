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
