"""Training logs: every dialect written out, with values worked out by hand, and broken ones."""

# ruff: noqa: E501
from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from profiles.errors import DocumentInvalid
from profiles.importers.megatron_log import FORMAT
from profiles.observations.records import IterationObservation
from tests.importing import read, read_anyway, written

ARGUMENTS = """using world size: 16, data-parallel size: 2, context-parallel size: 1, tensor-model-parallel size: 4, \
pipeline-model-parallel size: 2
0: ------------------------ arguments ------------------------
0:   bf16 ............................................ True
0:   data_parallel_size .............................. 2
0:   data_path ....................................... ['/home/somebody/corpus']
0:   expert_model_parallel_size ...................... 1
0:   ffn_hidden_size ................................. 16384
0:   global_batch_size ............................... 128
0:   hidden_size ..................................... 4096
0:   log_interval .................................... 5
0:   micro_batch_size ................................ 2
0:   num_layers ...................................... 32
0:   pipeline_model_parallel_size .................... 2
0:   recompute_granularity ........................... selective
0:   seq_length ...................................... 8192
0:   sequence_parallel ............................... True
0:   tensor_model_parallel_size ...................... 4
0:   use_distributed_optimizer ....................... True
0:   virtual_pipeline_model_parallel_size ............ None
0:   world_size ...................................... 16
0: -------------------- end of arguments ---------------------
"""
LINES = """ [2025-08-01 07:19:37] iteration        5/    5000 | consumed samples:          640 | elapsed time per iteration \
(ms): 19138.8 | throughput per GPU (TFLOP/s/GPU): 80.2 | learning rate: 6.976744E-08 | global batch size:   128 | lm \
loss: 1.043863E+01 | loss scale: 1.0 | grad norm: 26.203 | number of skipped iterations:   0 | number of nan \
iterations:   0 |Number of parameters in transformer layers in billions:  6.98
Theoretical memory footprints: weight and optimizer=10764.77 MB
[Rank 2] (after 5 iterations) memory (MB) | allocated: 9334.375 | max allocated: 12680.5 | reserved: 13236.0 | max \
reserved: 13236.0[Rank 6] (after 5 iterations) memory (MB) | allocated: 10850.75 | max allocated: 10850.75 | \
reserved: 11000.0 | max reserved: 11000.0
 [2025-08-01 07:19:50] iteration       10/    5000 | consumed samples:         1280 | elapsed time per iteration \
(ms): 12936.1 | throughput per GPU (TFLOP/s/GPU): 118.7 | global batch size:   128 | lm loss: nan | number of \
skipped iterations:   1 | number of nan iterations:   1 |
"""


def timed(found: list[IterationObservation]) -> list[tuple[Any, ...]]:
    """Iteration, time, statistic and samples of those with a time."""
    return [
        (each.iteration, each.timing.time_s, each.timing.statistic, each.timing.num_samples)
        for each in found
        if each.timing is not None
    ]


def test_megatron_with_arguments_and_glued_lines(tmp_path: Path) -> None:
    imported = read(FORMAT, written(tmp_path, "a.log", ARGUMENTS + LINES), given={"device": "h100-sxm5-80gb"})
    (batch,) = imported.batches
    assert imported.bad_rows == []
    assert batch.environment.device == "h100-sxm5-80gb"
    assert (batch.environment.num_devices, batch.environment.framework) == (16, "megatron-lm")
    step, second, sixth = batch.iterations
    assert timed([step]) == [(10, pytest.approx(12.9361), "mean", 5)]
    assert step.strategy == {
        "dp": 2, "cp": 1, "tp": 4, "pp": 2, "ep": 1, "sp": True, "recompute": "selective", "zero_stage": 1,
    }  # fmt: skip
    assert (step.global_batch_size, step.micro_batch_size, step.sequence_length) == (128, 2, 8192)
    assert (step.num_devices, step.reported_flops_per_s_per_device) == (16, 118.7e12)
    assert step.detail["num_layers"] == 32
    assert step.detail["dtype"] == "bf16"
    assert step.detail["theoretical_weight_and_optimizer_bytes"] == round(10764.77 * 2**20)
    assert step.detail["loss_not_finite"] is True
    assert (step.detail["skipped_iterations"], step.detail["nan_iterations"]) == (1, 1)
    assert "somebody" not in str(imported)
    assert (second.rank, second.iteration, second.timing) == (2, 5, None)
    assert second.allocated_bytes == 9334 * 2**20 + 393216
    assert (second.peak_allocated_bytes, second.reserved_bytes) == (12680 * 2**20 + 2**19, 13236 * 2**20)
    assert (sixth.rank, sixth.peak_reserved_bytes) == (6, 11000 * 2**20)
    assert imported.skipped == {"first reading of a run: it includes start-up": 1}


def test_seconds_and_deepspeed_flavour(tmp_path: Path) -> None:
    text = (
        " iteration        2/   95367 | consumed samples:         4096 | consumed tokens:      8388608 | elapsed time "
        "per iteration (s): 769.99 | learning rate: 3.787E-06 | global batch size:  2048 | lm loss: 6.384045E+01 | "
        "number of skipped iterations:   0 | number of nan iterations:   0 | samples per second: 2.660 | TFLOPs: 108.47 |\n"
    )
    imported = read(FORMAT, written(tmp_path, "a.md", "## Best\n\n```\n" + text + "```\n"))
    (step,) = imported.batches[0].iterations
    assert timed([step]) == [(2, pytest.approx(769.99), "mean", None)]
    assert step.reported_flops_per_s_per_device == pytest.approx(108.47e12)
    assert imported.tool == "megatron-deepspeed"
    assert [flag.code for flag in imported.flags] == ["start-up-included"]
    assert step.row == 4


def test_deepspeed_lines_give_way_to_megatron(tmp_path: Path) -> None:
    def step(number: int) -> str:
        return (
            f"[2024-03-07 15:27:02,646] [INFO] [timer.py:260:stop] epoch=0/micro_step={number}/global_step={number}, "
            "RunningAvgSamplesPerSec=58.7, CurrSamplesPerSec=61.35, MemAllocated=6.01GB, MaxMemAllocated=19.52GB\n"
            f"iteration {number:8d}/  317892 | consumed samples: 768 | consumed tokens: 1 | elapsed time per iteration "
            "(ms): 14287.5 | global batch size:   768 | actual seqlen:  4096 |\n"
        )

    text = "[config.py:1000:print]   train_batch_size ............. 768\n" + step(1) + step(2) + step(3)
    imported = read(FORMAT, written(tmp_path, "a.log", text))
    found = imported.batches[0].iterations
    assert timed(found) == [(2, 14.2875, "single", 1), (3, 14.2875, "single", 1)]
    assert found[0].sequence_length == 4096
    assert imported.skipped["DeepSpeed's report of a step that Megatron reports too"] == 3


def test_deepspeed_alone(tmp_path: Path) -> None:
    text = (
        "[INFO] [config.py:1000:print]   train_batch_size ............. 96\n"
        "[INFO] [config.py:1000:print]   train_micro_batch_size_per_gpu  4\n"
        "[INFO] [config.py:1000:print]   zero_optimization_stage ...... 3\n"
        + "".join(
            f"epoch=0/micro_step={n}/global_step={n}, RunningAvgSamplesPerSec=3.7, CurrSamplesPerSec={speed}, "
            "MemAllocated=6.5GB, MaxMemAllocated=19.25GB\n"
            for n, speed in ((10, 1.0), (20, 4.8))
        )
        + "steps: 30 loss: 6.9312 iter time (s): 1.234 samples/sec: 77.796\n"
    )
    found = read(FORMAT, written(tmp_path, "a.log", text)).batches[0].iterations
    assert timed(found) == [(20, pytest.approx(20.0), "mean", 10), (30, 1.234, "mean", 10)]
    assert (found[0].allocated_bytes, found[0].peak_allocated_bytes) == (round(6.5 * 2**30), round(19.25 * 2**30))
    assert found[0].strategy == {"zero_stage": 3}
    assert found[0].global_batch_size == 96


def test_prefixes_and_two_runs_in_one_file(tmp_path: Path) -> None:
    def step(number: int, time_ms: float) -> str:
        return (
            f"[lrdn3321:3]: [2025-03-31 05:54:07] iteration {number:8d}/  242204 | consumed samples: 50400 | elapsed "
            f"time per iteration (ms): {time_ms} | global batch size:  1008 | lm loss: 6.258318E+00 |\n"
        )

    text = step(10, 9000.0) + step(20, 1500.0) + step(20, 1500.0) + step(10, 8000.0) + step(20, 1400.0)
    imported = read(FORMAT, written(tmp_path, "a.log", text))
    assert timed(imported.batches[0].iterations) == [(20, 1.5, "mean", 10), (20, pytest.approx(1.4), "mean", 10)]
    assert imported.skipped == {"first reading of a run: it includes start-up": 2, "line printed twice": 1}


def test_decimal_gigabytes_of_bridge(tmp_path: Path) -> None:
    text = (
        "worker/0 [Rank 1] (after 2 iterations) memory (GB) | mem-allocated-gigabytes: 63.66 | mem-reserved-gigabytes: "
        "182.2 | mem-max-allocated-gigabytes: 153.4 | mem-max-reserved-gigabytes: 182.2 | mem-alloc-retires: 0\n"
    )
    (found,) = read(FORMAT, written(tmp_path, "a.log", text)).batches[0].iterations
    assert (found.rank, found.iteration) == (1, 2)
    assert (found.allocated_bytes, found.peak_allocated_bytes) == (63_660_000_000, 153_400_000_000)
    assert (found.reserved_bytes, found.peak_reserved_bytes) == (182_200_000_000, 182_200_000_000)


def test_nemo(tmp_path: Path) -> None:
    text = (
        "retraining/0 [default0]:Training epoch 0, iteration 0/99 | lr: 9.804e-08 | global_batch_size: 4 | "
        "global_step: 0 | reduced_train_loss: 14.66 | train_step_timing in s: 5.276\n"
        "retraining/0 [default0]:Training epoch 0, iteration 1/99 | lr: 1.961e-07 | global_batch_size: 4 | "
        "global_step: 1 | peak_memory_usage: 70833405952 | memory_allocated: 44271689728 | reduced_train_loss: 15.07 | "
        "train_step_timing in s: 2.008 | TFLOPS_per_GPU: 512.5 | consumed_samples: 8\n"
    )
    (step,) = read(FORMAT, written(tmp_path, "a.log", text)).batches[0].iterations
    assert timed([step]) == [(2, 2.008, "single", 1)]
    assert (step.peak_allocated_bytes, step.allocated_bytes) == (70833405952, 44271689728)
    assert (step.global_batch_size, step.reported_flops_per_s_per_device) == (4, 512.5e12)


def test_nanotron(tmp_path: Path) -> None:
    prefix = "08/31/2024 14:37:31 [INFO|DP=0|PP=0|TP=0]: "
    text = "".join(
        prefix
        + " Memory usage: 64.15MiB. Peak allocated 309.25MiB. Peak reserved: 496.00MiB\n"
        + prefix
        + f"iteration: {n} / 15 | consumed_tokens: 512 | elapsed_time_per_iteration_ms: {time} | tokens_per_sec: 109 | "
        "tokens_per_sec_per_gpu: 109 | global_batch_size: 2 | lm_loss: 5.32 | lr: 0.00015 | model_tflops_per_gpu: "
        "1.5 | hardware_tflops_per_gpu: 1.5 | grad_norm: 2.96 | cuda_max_memory_reserved: 520M\n"
        for n, time in ((1, "4.71K"), (2, "312"))
    )
    imported = read(FORMAT, written(tmp_path, "a.log", text))
    step, first_memory, _ = imported.batches[0].iterations
    assert timed([step]) == [(2, 0.312, "single", 1)]
    assert (step.peak_reserved_bytes, step.reported_flops_per_s_per_device) == (520_000_000, 1.5e12)
    assert (first_memory.allocated_bytes, first_memory.peak_allocated_bytes) == (67266150, 324272128)
    assert [flag.code for flag in imported.flags] == ["rounded"]


TITAN = """[rank0]:[titan] 2025-11-25 19:44:58,595 - root - INFO - CUDA capacity: NVIDIA H100 80GB HBM3 with 79.10GiB memory
[rank0]:[titan] 2025-11-25 19:44:58,595 - root - INFO - Building device mesh with parallelism: pp=1, dp_replicate=1, \
dp_shard=4, cp=1, tp=2, ep=1
[rank0]:[titan] 2025-11-25 19:44:58,838 - root - INFO - Trainer is initialized with local batch size 8, global batch \
size 64, gradient accumulation steps 2, sequence length 2048, total steps 10 (warmup 2)
[rank0]:[titan] 2025-11-25 19:45:01,441 - root - INFO - step:  1  loss:  8.0277  grad_norm:  1.4604  memory:  \
1.21GiB(0.86%)  tps: 5,756  tflops: 0.41  mfu: 0.04%
[rank0]:[titan] 2025-11-25 19:45:01,496 - root - INFO - step: 10  loss:  7.7082  grad_norm:  1.5585  memory:  \
1.50GiB(0.96%)  tps: 16,384  tflops: 1,021.55  mfu: 2.18%
"""


def test_torchtitan_time_from_tokens_a_second(tmp_path: Path) -> None:
    (batch,) = read(FORMAT, written(tmp_path, "a.log", TITAN)).batches
    (step,) = batch.iterations
    # 64 samples of 2048 tokens on 8 devices at 16,384 tokens a second each: exactly one second.
    assert timed([step]) == [(10, 1.0, "mean", 9)]
    assert (step.peak_reserved_bytes, step.reported_flops_per_s_per_device) == (3 * 2**29, 1021.55e12)
    assert (batch.environment.device, batch.environment.num_devices) == ("h100-sxm5-80gb", 8)
    assert step.strategy == {"pp": 1, "dp_replicate": 1, "dp_shard": 4, "cp": 1, "tp": 2, "ep": 1}


def test_torchtitan_without_batch_holds_memory_only(tmp_path: Path) -> None:
    lines = [line for line in TITAN.splitlines() if "step:" in line]
    file = written(tmp_path, "a.log", "\n".join(lines))
    imported = read(FORMAT, file)
    assert timed(imported.batches[0].iterations) == []
    assert [flag.code for flag in imported.flags] == ["no-step-time"]
    given = {"global_batch_size": "64", "sequence_length": "2048", "num_devices": "8"}
    assert timed(read(FORMAT, file, given=given).batches[0].iterations)[0][1] == 1.0


@pytest.mark.parametrize(
    ("message", "allocated", "reserved"),
    [
        (
            "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity "
            "of 79.15 GiB of which 1.19 GiB is free. Process 12 has 77.00 GiB memory in use. Of the allocated memory "
            "70.50 GiB is allocated by PyTorch, and 1.50 GiB is reserved by PyTorch but unallocated.",
            70.5,
            72.0,
        ),
        (
            "[default3]:RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB (GPU 3; 79.15 GiB total capacity; "
            "70.50 GiB already allocated; 1.19 GiB free; 72.00 GiB reserved in total by PyTorch)",
            70.5,
            72.0,
        ),
    ],
)
def test_out_of_memory_is_one_failure(tmp_path: Path, message: str, allocated: float, reserved: float) -> None:
    imported = read(FORMAT, written(tmp_path, "a.log", ARGUMENTS + f"{message}\n" * 3))
    (failure,) = imported.batches[0].iterations
    assert (failure.ok, failure.out_of_memory, failure.rank) == (False, True, 3)
    assert failure.allocated_bytes == allocated * 2**30
    assert failure.reserved_bytes == reserved * 2**30
    assert failure.detail["tried_bytes"] == 2 * 2**30
    assert failure.detail["capacity_bytes"] == round(79.15 * 2**30)
    assert failure.detail["num_reports"] == 3
    assert failure.strategy["tp"] == 4


@pytest.mark.parametrize("value", ["nan", "-3.0", "0.0", "1e999", "12..5", "abc", ""])
def test_broken_times_are_bad_rows(tmp_path: Path, value: str) -> None:
    text = LINES + f" iteration 15/ 5000 | consumed samples: 1 | elapsed time per iteration (ms): {value} | x: 1 |\n"
    imported = read(FORMAT, written(tmp_path, "a.log", text))
    assert len(imported.bad_rows) == 1
    assert imported.bad_rows[0].where == "line 5"
    assert len(timed(imported.batches[0].iterations)) == 1


def test_an_unknown_unit_is_not_guessed(tmp_path: Path) -> None:
    text = " iteration 15/ 5000 | consumed samples: 1 | elapsed time per iteration (us): 5.0 |\n"
    imported = read(FORMAT, written(tmp_path, "a.log", LINES + text))
    assert "'us'" in imported.bad_rows[0].what


def test_cut_anywhere_only_clear_errors(tmp_path: Path) -> None:
    whole = (ARGUMENTS + LINES + TITAN).encode()
    for end in range(0, len(whole), 97):
        file = written(tmp_path, "a.log", whole[:end])
        with suppress(DocumentInvalid):
            read_anyway(FORMAT, [file])


@pytest.mark.parametrize(
    "text",
    [
        "log_string += ' elapsed time per iteration (ms): {:.1f} |'.format(\n",
        "Each run prints `iteration N/M | ... | elapsed time per iteration (ms): X`.\n",
        "step: 10 done\nloss: 3\n",
    ],
)
def test_what_only_mentions_it_does_not_match(tmp_path: Path, text: str) -> None:
    assert not FORMAT.matches(written(tmp_path, "a.txt", text).head())


def test_newer_nanotron_counts_tokens(tmp_path: Path) -> None:
    line = (
        "12/21 01:39:51 [INFO|DP=0|TP=0|lrdn0007]: iteration: {0} / 1500000 | consumed_tokens: 480B | "
        "time_per_iteration_ms: 8.79K | tokens_per_sec: 182K | tokens_per_sec_per_gpu: 699 | "
        "global_batch_size: {1} | grad_norm: 0.112 | lm_loss: 2.04 | model_tflops_per_gpu: 15.4 | eta: 131 days\n"
    )
    text = line.format(1, "1.6M") + line.format(2, "1.6M") + line.format(3, "512K") + line.format(4, "512")
    imported = read(FORMAT, written(tmp_path, "a.log", text))
    second, third, fourth = imported.batches[0].iterations
    assert second.timing is not None
    assert second.timing.time_s == pytest.approx(8.79)
    assert (second.global_batch_size, second.detail["tokens_per_iteration"]) == (None, 1_600_000)
    # 512K is neither the tokens of this iteration nor 512 samples.
    assert (third.global_batch_size, fourth.global_batch_size) == (None, 512)
    assert "lrdn0007" not in repr(imported)


def test_memory_reports_in_documents(tmp_path: Path) -> None:
    text = (
        "6: [Rank 6] (after 2 iterations) memory (MB) | allocated: 53199.0 | **max allocated: 84019.0** | "
        "reserved: 84732.0 | max reserved: 84732.0\n"
        "[Rank 0] memory (MB) | allocated: 9635.0 | max allocated: 45006.0 | reserved: 45694.0 | max reserved: 45694.0\n"
    )
    first, second = read(FORMAT, written(tmp_path, "a.md", text)).batches[0].iterations
    assert (first.rank, first.iteration, first.peak_allocated_bytes) == (6, 2, 84019 * 2**20)
    assert (second.rank, second.iteration, second.peak_allocated_bytes) == (0, None, 45006 * 2**20)
