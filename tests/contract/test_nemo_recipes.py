"""The table of NeMo's recipes: what its files say, and, where the repository lies, what the generator makes of them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from planner.backends.nemo.names import rows_of
from planner.backends.nemo.recipe_table import FUNCTIONS, recipe, recipe_names
from planner.errors import DocumentInvalid

REPOSITORY = Path(__file__).parents[2]
TABLE = REPOSITORY / "planner/backends/nemo/recipes_2_4_0.jsonl"
SAYS: tuple[tuple[str, str, dict[str, Any], dict[str, Any]], ...] = (
    (  # recipes/llama3_70b.py:63-70, 172-230
        "llama3_70b", "pretrain_recipe", {"num_nodes": 16},
        {"model.tensor_model_parallel_size": 4, "model.pipeline_model_parallel_size": 4,
         "model.virtual_pipeline_model_parallel_size": 5, "model.context_parallel_size": 2,
         "train.global_batch_size": 512, "dataset.seq_length": 8192, "mixed_precision.grad_reduce_in_fp32": True},
    ),
    (  # :239-285
        "llama3_70b", "pretrain_recipe", {"performance_mode": True},
        {"comm_overlap.tp_comm_overlap": True, "mixed_precision.grad_reduce_in_fp32": False},
    ),
    (  # :292-460, performance_mode with LoRA
        "llama3_70b", "finetune_recipe", {"performance_mode": True},
        {"model.tensor_model_parallel_size": 2, "model.pipeline_model_parallel_size": 4, "peft": "LoRA",
         "peft.target_modules": ["linear_qkv"], "dataset.seq_length": 4096, "train.global_batch_size": 8},
    ),
    ("llama3_70b", "finetune_recipe", {"peft_scheme": "dora"}, {"peft": "DoRA", "peft.dim": 16}),
    (  # recipes/qwen3_30b_a3b.py:58-90
        "qwen3_30b_a3b", "pretrain_recipe", {"tensor_parallelism": 2, "seq_length": 8192},
        {"model.tensor_model_parallel_size": 2, "model.expert_model_parallel_size": 4, "dataset.seq_length": 8192,
         "model.recompute_granularity": "full", "model.num_moe_experts": 128, "tokenizer.tokenizer_model":
         "Qwen/Qwen3-30B-A3B"},
    ),
)  # fmt: skip


@pytest.mark.parametrize(("module", "function", "given", "says"), SAYS, ids=[f"{row[0]}-{row[2]}" for row in SAYS])
def test_recipe_says_what_its_file_says(
    module: str, function: str, given: dict[str, Any], says: dict[str, Any]
) -> None:
    rows = {bridge: value for _, bridge, value in rows_of(recipe(module, function, given, "x")) if bridge}
    assert {path: rows.get(path) for path in says} == says


def test_every_recipe_gives_rows() -> None:
    assert len(recipe_names()) > 80
    made = 0
    for name in recipe_names():
        for function in FUNCTIONS:
            with contextlib.suppress(DocumentInvalid):  # a module with one of the two alone
                made += bool(list(rows_of(recipe(name, function, {}, "x"))))
    assert made > 150


def test_the_table_is_what_the_release_gives(tmp_path: Path) -> None:
    folder = os.environ.get("MESHWRIGHT_NEMO")
    if not folder:
        pytest.skip("needs the files of NVIDIA/NeMo v2.4.0: MESHWRIGHT_NEMO=FOLDER")
    words = [sys.executable, "-m", "tests.contract.nemo_recipes", folder, str(tmp_path / "made")]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (tmp_path / "made").read_text(encoding="utf-8") == TABLE.read_text(encoding="utf-8")
