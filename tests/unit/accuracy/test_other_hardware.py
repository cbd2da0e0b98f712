"""Runs on other vendors' devices map, and their utilization is in the range that such runs reach."""

from __future__ import annotations

import pytest

from planner.evidence.runs.prediction import Prediction, predict_rows
from tests.accuracy_rows import rows_of

SEVEN = {
    "model": "llama2-7b", "params_b": "6.74", "hidden": "4096", "ffn_hidden": "11008", "heads": "32", "kv_heads": "32",
    "vocab": "32000", "seq_len": "4096", "inter_node_link": "", "step_time_s": "", "tokens_per_s_per_device": "1000",
}  # fmt: skip
GPT3 = SEVEN | {
    "model": "gpt3-175b", "params_b": "174.6", "layers": "96", "hidden": "12288", "ffn_hidden": "49152", "heads": "96",
    "kv_heads": "96", "vocab": "51200", "seq_len": "2048",
}  # fmt: skip
SILENT = {"tp": "", "pp": "", "mbs": ""}
CASES: dict[str, dict[str, str]] = {
    "TPU v5p": {"device": "TPU-v5p", "num_devices": "128", "gbs": "512", "source": "github:AI-Hypercomputer/maxtext:x"}
    | SILENT,
    "TPU v6e": {"device": "TPU v6e", "num_devices": "256", "gbs": "1024", "source": "github:AI-Hypercomputer/maxtext:x"}
    | SILENT,
    "TPU v5e": {"device": "TPU-v5e", "num_devices": "512", "gbs": "1024", "source": "github:AI-Hypercomputer/maxtext:x"}
    | SILENT,
    "TPU v4": {"device": "TPU-v4", "num_devices": "384", "gbs": "768", "source": "mlcommons/training_results"} | SILENT,
    "TPU v3": {"device": "TPU-v3", "num_devices": "128", "gbs": "512", "source": "levanter", "zero_or_fsdp": "fsdp"}
    | SILENT,
    "NeuronCore": {"device": "trn1 NeuronCore", "num_devices": "512", "gbs": "1024", "tp": "8", "pp": "1"},
    "Trainium1": {"device": "Trainium1-NeuronCore", "num_devices": "32", "gbs": "64", "tp": "8", "pp": "1"},
    "Trainium2": {"device": "trn2", "num_devices": "64", "gbs": "256", "tp": "8", "pp": "1"},
    "Ascend 910B": {"device": "Ascend 910B", "num_devices": "8", "gbs": "32", "tp": "2", "pp": "1", "precision": ""},
    "Atlas": {"device": "Atlas 800T A2 (Ascend-910B)", "num_devices": "64", "gbs": "128", "tp": "8", "pp": "2"},
    "MI300X": {"device": "MI300X", "num_devices": "8", "gbs": "128", "tp": "1", "pp": "1", "precision": "fp8"},
    "MI325X": {"device": "AMD Instinct MI325X", "num_devices": "8", "gbs": "64", "zero_or_fsdp": "fsdp2"} | SILENT,
    "MI250X": {"device": "AMD MI250X (GCD)", "num_devices": "64", "gbs": "128", "tp": "8", "pp": "1"},
    "Gaudi2": {"device": "Gaudi2", "num_devices": "64", "gbs": "128", "tp": "4", "pp": "1", "precision": "fp8"},
    "GH200": {"device": "GH200-96GB", "num_devices": "16", "gbs": "256", "mbs": "2", "source": "github:eth/sailor:x"},
    "B200": {"device": "B200", "num_devices": "8", "gbs": "16", "tp": "2", "pp": "1", "source": "github:x/SimuMax:x"},
    "B300 nvfp4": {"device": "B300", "num_devices": "64", "gbs": "512", "tp": "1", "pp": "1", "precision": "nvfp4"},
    "GB300": {"device": "GB300", "num_devices": "64", "gbs": "512", "tp": "1", "pp": "1", "precision": "mxfp8"},
    "A800": {"device": "A800-80GB", "num_devices": "64", "gbs": "256", "tp": "1", "pp": "1"},
    "V100": {"device": "V100-PCIE-32GB", "num_devices": "8", "gbs": "64", "tp": "2", "pp": "1", "precision": ""},
    "L4 fp32": {"device": "L4", "num_devices": "1", "gbs": "4", "tp": "1", "pp": "1", "precision": "fp32"},
    "H100 LoRA": {"device": "H100-SXM-80GB", "num_devices": "8", "gbs": "32", "notes": "LoRA finetune"},
}
LARGE: dict[str, dict[str, str]] = {
    "MegaScale": {"device": "A100-SXM-80GB", "num_devices": "12288", "gbs": "6144", "tp": "8", "pp": "8", "vpp": "6",
                  "source": "arXiv:2402.15627 Table 2"},
    "MLPerf": {"device": "H100", "num_devices": "512", "gbs": "2048", "tp": "4", "pp": "8", "vpp": "6", "mbs": "2",
               "source": "github:mlcommons/training_results_v3.0:x", "precision": ""},
    "zero bubble": {"device": "A100-SXM-80GB", "num_devices": "64", "gbs": "256", "tp": "8", "pp": "8",
                    "source": "arXiv:2401.10241 Table 4", "notes": "ZB-1p"},
}  # fmt: skip


def prediction_of(change: dict[str, str]) -> Prediction:
    predictions, unmapped = predict_rows(rows_of(change))
    assert not unmapped, unmapped[0].reason
    return predictions[0]


@pytest.mark.parametrize("change", [SEVEN | case for case in CASES.values()], ids=list(CASES))
def test_runs_of_seven_billion_map_with_a_plausible_utilization(change: dict[str, str]) -> None:
    found = prediction_of(change)
    assert 0.12 < found.model_flops_per_device / found.step_time_s / found.peak_flops_per_s < 0.78


@pytest.mark.parametrize("change", [GPT3 | case for case in LARGE.values()], ids=list(LARGE))
def test_large_runs_map_with_a_plausible_utilization(change: dict[str, str]) -> None:
    found = prediction_of(change)
    assert 0.25 < found.model_flops_per_device / found.step_time_s / found.peak_flops_per_s < 0.65


def test_a_power_limit_takes_its_square_root() -> None:
    """500 W of 700 W: matmul-bound runs are about 1.18 times slower."""
    limited = prediction_of(GPT3 | {"device": "H100-96GB-HBM2e-500W"}).step_time_s
    free = prediction_of(GPT3 | {"device": "H100-SXM-80GB"}).step_time_s
    assert 1.12 < limited / free < 1.25


def test_adapters_alone_save_what_was_measured() -> None:
    """Full fine-tuning against LoRA, the same model, devices, tokens: 0.87 to 0.94 of the time on one to four A100
    (VectorInstitute/vectorlm docs/reference_throughput.md@9045f08ac1, nine pairs), 0.69 to 0.92 in
    fms-acceleration's tables (scripts/benchmarks/refs/a100_80gb_liger.csv@876e2ed6fc, fourteen pairs)."""
    whole = prediction_of(SEVEN | {"num_devices": "8", "gbs": "32"}).step_time_s
    assert 0.8 < prediction_of(SEVEN | {"num_devices": "8", "gbs": "32", "notes": "LoRA"}).step_time_s / whole < 0.94
