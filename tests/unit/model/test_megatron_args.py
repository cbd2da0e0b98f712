from __future__ import annotations

from pathlib import Path

import pytest

from planner.model.builtin import builtin_model
from planner.model.load import load_model
from planner.model.megatron_args import megatron_job
from planner.model.parameters import mtp_parameters, total_parameters
from planner.model.shell_words import UNKNOWN, script_words
from planner.question.problem import Workload
from planner.strategy.strategy import Strategy
from profiles.validation import FindingsInvalid

GPT3 = r"""#!/bin/bash
# Trains the "175B" model; don't change the layout
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NUM_NODES=${SLURM_NNODES:-16}
CHECKPOINT_PATH=$1 # <where to save>

DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE
    --nnodes $NUM_NODES
    --master_addr localhost
)
GPT_MODEL_ARGS=(
    --num-layers 96
    --hidden-size 12288
    --num-attention-heads 96
    --seq-length 2048
    --max-position-embeddings 2048
    --attention-backend auto # flash, fused or unfused
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 1536
    --weight-decay 0.1
    --bf16
    --lr 6.0e-5
    --recompute-activations
    --use-distributed-optimizer
)
MODEL_PARALLEL_ARGS=(
	--tensor-model-parallel-size 8
	--pipeline-model-parallel-size 16
	--num-layers-per-virtual-pipeline-stage 2
	--sequence-parallel
)
if [ "$PROFILE" = 1 ]; then
    TRAINING_ARGS+=(--profile --use-pytorch-profiler)
fi
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py \
    ${GPT_MODEL_ARGS[@]} \
    ${TRAINING_ARGS[@]} \
    "${MODEL_PARALLEL_ARGS[@]}" \
    --vocab-size 51200 --save "$CHECKPOINT_PATH" 2>&1 | tee log.txt
"""

LLAMA = """--num-layers 80 --hidden-size 8192 --ffn-hidden-size 28672 --num-attention-heads 64
--group-query-attention --num-query-groups 8 --seq-length 8192 --max-position-embeddings 131072
--position-embedding-type rope --rotary-base 500000 --normalization RMSNorm --swiglu --disable-bias-linear
--untie-embeddings-and-output-weights --tokenizer-type HuggingFaceTokenizer --vocab-size 128256
--tensor-model-parallel-size 2 --context-parallel-size 2 --cp-comm-type a2a --use-megatron-fsdp
--data-parallel-sharding-strategy optim_grads_params --recompute-granularity selective
--recompute-modules layernorm mlp --fp8-format hybrid --bf16"""

GLM = """N_DENSE_LAYERS=3
N_MOE_LAYERS=89
MODEL_ARGS=(
    --disable-bias-linear --qk-layernorm --group-query-attention
    --num-attention-heads 96 --num-query-groups 8 --kv-channels 128
    --num-layers $((N_DENSE_LAYERS + N_MOE_LAYERS))
    --hidden-size 5120
    --ffn-hidden-size 12288

    --add-qkv-bias --normalization RMSNorm --position-embedding-type rope --rotary-percent 0.5 --swiglu
    --untie-embeddings-and-output-weights --vocab-size 151552 --rotary-base 1000000
    # moe
    --moe-ffn-hidden-size 1536 --moe-shared-expert-intermediate-size 1536 --moe-router-score-function sigmoid
    --moe-router-topk 8 --moe-layer-freq [0]*$N_DENSE_LAYERS+[1]*$N_MOE_LAYERS --num-experts 160
)
"""

DEEPSEEK = r"""
MLA="--multi-latent-attention --qk-layernorm --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 \
     --qk-pos-emb-head-dim 64 --v-head-dim 128"
run_cmd="torchrun --nproc-per-node=8 pretrain_gpt.py ${MLA} --num-layers 61 --hidden-size 7168 \
  --ffn-hidden-size 18432 --num-attention-heads 128 --swiglu --disable-bias-linear --normalization RMSNorm \
  --untie-embeddings-and-output-weights --position-embedding-type rope --vocab-size 129280 \
  --num-experts 256 --moe-router-topk 8 --moe-ffn-hidden-size 2048 --moe-shared-expert-intermediate-size 2048 \
  --moe-layer-freq ([0]*3+[1]*58) --moe-router-score-function sigmoid --moe-router-num-groups 8 \
  --moe-router-group-topk 4 --mtp-num-layers 1 --expert-model-parallel-size 8 --expert-tensor-parallel-size 1"
echo ${run_cmd}
eval ${run_cmd}
"""


def findings(text: str) -> dict[str, str]:
    with pytest.raises(FindingsInvalid) as caught:
        megatron_job(text, "x", "run.sh")
    return {finding.pointer: f"{finding.what}; {finding.hint}" for finding in caught.value.findings}


def test_gpt3_script_with_arrays_variables_and_comments() -> None:
    job = megatron_job(GPT3, "gpt3", "run.sh")
    assert total_parameters(job.model) == total_parameters(builtin_model("gpt3-175b"))
    assert job.workload == {"global_batch_size": 1536, "sequence_length": 2048, "precision": "bf16"}
    assert job.num_devices == 128
    assert job.skipped == ("--profile", "--use-pytorch-profiler")
    assert Workload(**job.workload).global_batch_size == 1536
    strategy = Strategy(**job.strategy)
    assert (strategy.tp, strategy.pp, strategy.vpp, strategy.sp) == (8, 16, 3, True)
    assert (strategy.schedule, strategy.microbatch_group_size) == ("interleaved", 16)
    assert (strategy.zero_stage, strategy.recompute, strategy.recompute_modules) == (
        1,
        "selective",
        ("attention_core",),
    )


def test_llama_argument_string() -> None:
    job = megatron_job(LLAMA, "llama", "args")
    assert total_parameters(job.model) == total_parameters(builtin_model("llama-3.1-70b"))
    assert job.model.rotary_base == 500000
    assert job.workload["precision"] == "fp8"
    assert job.strategy["cp_kind"] == "all_to_all"
    assert job.strategy["zero_stage"] == 3
    assert job.strategy["recompute_modules"] == ("norm", "mlp")


_TWO_LAYERS = (
    "--num-layers 2 --hidden-size 96 --num-attention-heads 4 --max-position-embeddings 8 --vocab-size 100"
    " --recompute-activations"
)


@pytest.mark.parametrize(
    ("more", "modules"),
    [
        ("", ("attention_core",)),
        # The switch wins (Megatron-LM core 0.19.2 training/arguments.py:589).
        ("--recompute-granularity full", ("attention_core",)),
        ("--recompute-modules mlp moe_act mla_up_proj", ("mlp", "activation", "mla_up_proj")),
    ],
)
def test_recompute_activations_is_selective(more: str, modules: tuple[str, ...]) -> None:
    strategy = megatron_job(f"{_TWO_LAYERS} {more}", "x", "a").strategy
    assert (strategy["recompute"], strategy["recompute_modules"]) == ("selective", modules)


@pytest.mark.parametrize(
    ("more", "recompute"),
    [
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", "full"),
        # Uniform recomputes every layer, two of them from one saved input.
        ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 2", "full"),
        ("--recompute-granularity full --recompute-method block --recompute-num-layers 2", "full-first-2"),
        ("--recompute-granularity full --recompute-method block --recompute-num-layers 0", "none"),
        ("--recompute-granularity full", "full"),
        ("--checkpoint-activations", "full"),
        ("--activations-checkpoint-method block --activations-checkpoint-num-layers 3", "full-first-3"),
        ("--activations-checkpoint-method uniform", "full"),
    ],
)
def test_full_recompute_is_of_the_layers_that_the_script_says(more: str, recompute: str) -> None:
    words = _TWO_LAYERS.replace(" --recompute-activations", "")
    assert megatron_job(f"{words} {more}", "x", "a").strategy["recompute"] == recompute


def test_block_recompute_needs_its_number_of_layers() -> None:
    words = _TWO_LAYERS.replace(" --recompute-activations", "")
    with pytest.raises(FindingsInvalid) as refused:
        megatron_job(f"{words} --recompute-granularity full --recompute-method block", "x", "a")
    assert [found.pointer for found in refused.value.findings] == ["/--recompute-method"]


@pytest.mark.parametrize(
    ("more", "flag"),
    [
        ("--recompute-method uniform", "/--recompute-method"),
        ("--recompute-num-layers 1", "/--recompute-num-layers"),
        ("--recompute-modules core_atn", "/--recompute-modules"),
    ],
)
def test_what_contradicts_selective_recompute_is_found(more: str, flag: str) -> None:
    with pytest.raises(FindingsInvalid) as refused:
        megatron_job(f"{_TWO_LAYERS} {more}", "x", "a")
    assert [found.pointer for found in refused.value.findings] == [flag]


def test_moe_arguments_equal_the_hugging_face_model() -> None:
    job = megatron_job(GLM, "glm", "glm.sh")
    assert total_parameters(job.model) == total_parameters(builtin_model("glm-4.5"))
    assert job.model.layer_kinds[1].moe == builtin_model("glm-4.5").layer_kinds[1].moe


def test_latent_attention_and_mtp_in_a_quoted_command() -> None:
    job = megatron_job(DEEPSEEK, "ds", "ds.sh")
    reference = builtin_model("deepseek-v3")
    assert total_parameters(job.model) == total_parameters(reference) + mtp_parameters(reference)
    assert job.model.layer_kinds == reference.layer_kinds
    assert (job.strategy["ep"], job.strategy["etp"], job.num_devices) == (8, 1, 8)


def test_script_file_is_a_model_reference(tmp_path: Path) -> None:
    path = tmp_path / "pretrain_llama.sh"
    path.write_text(LLAMA)
    assert load_model(str(path)).name == "pretrain_llama"


def test_defaults_of_megatron() -> None:
    base = "--num-layers 2 --hidden-size 96 --num-attention-heads 4 --max-position-embeddings 8 --vocab-size 100 "
    plain = megatron_job(base, "x", "a").model
    assert plain.vocab_size == 128
    assert plain.tie_embeddings
    assert plain.layer_kinds[0].norm == "layer"
    assert plain.layer_kinds[0].mlp is not None
    assert plain.layer_kinds[0].mlp.intermediate_size == 384
    gated = megatron_job(base + "--swiglu", "x", "a").model.layer_kinds[0].mlp
    assert gated is not None
    assert gated.intermediate_size == 256
    padded = megatron_job(base + "--tensor-model-parallel-size 8 --make-vocab-size-divisible-by 10", "x", "a").model
    assert padded.vocab_size == 160
    null = megatron_job(base + "--tokenizer-type NullTokenizer --make-vocab-size-divisible-by 100", "x", "a").model
    assert null.vocab_size == 100  # one more until core 0.17: core/tokenizers/text/libraries/null_tokenizer.py
    shared = megatron_job(base + "--group-query-attention", "x", "a").model.layer_kinds[0].attention
    assert shared.num_kv_heads == 1
    every = megatron_job(base + "--num-experts 4 --moe-layer-freq 2", "x", "a").model
    assert [every.layer_kinds[kind].moe is not None for kind in every.layer_kind_sequence()] == [True, False]
    window = megatron_job(base + "--window-size (127,0) --window-attn-skip-freq 2", "x", "a").model
    assert [kind.attention.sliding_window for kind in window.layer_kinds] == [128, None]


def test_what_is_missing_or_open_is_named_at_once() -> None:
    found = findings("torchrun x.py --num-layer 32 --hidden-size $H --num-attention-heads 7 --vocab-size abc")
    assert "'--num-layers'" in found["/--num-layer"]
    assert "$H" in found["/--hidden-size"]
    assert "an integer" in found["/--vocab-size"]
    assert "missing" in found["/--max-position-embeddings"]


def test_impossible_numbers() -> None:
    base = "--num-layers 2 --hidden-size 96 --num-attention-heads 4 --max-position-embeddings 8 --vocab-size 100 "
    assert "/--num-layers" in findings(base + "--num-layers 0")
    assert "at most" in findings(base + "--num-layers 20000")["/--num-layers"]
    assert "/--num-attention-heads" in findings(base + "--num-attention-heads 5")
    assert "/--num-query-groups" in findings(base + "--group-query-attention --num-query-groups 3")
    assert "/--moe-router-topk" in findings(base + "--num-experts 4 --moe-router-topk 5")
    assert "/--moe-layer-freq" in findings(base + "--num-experts 4 --moe-layer-freq [1]*3")
    assert "/--moe-layer-freq" in findings(base + "--num-experts 4 --moe-layer-freq __import__('os')")
    assert "/--rotary-base" in findings(base + "--rotary-base nan")
    assert "/--num-layers-per-virtual-pipeline-stage" in findings(
        base + "--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3"
    )


def test_a_value_that_only_a_branch_sets_is_not_guessed() -> None:
    script = """
if [ $SIZE = 7B ]; then
  HIDDEN=4096
else
  HIDDEN=8192
fi
python pretrain_gpt.py --hidden-size $HIDDEN --num-layers 2 --num-attention-heads 4 --vocab-size 9 \\
   --position-embedding-type rope --seq-length 8
"""
    assert set(findings(script)) == {"/--hidden-size"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a 'b c' \"d e\" # f", ["a", "b c", "d e"]),
        ('X="p q"; echo $X "$X"', ["echo", "p", "q", "p q"]),
        ("X=3\necho $((X * (2 + 4) / 4)) ${Y:-z}", ["echo", "4", "z"]),
        ("A=(1 '2 3')\nA+=(4)\necho ${A[@]}", ["echo", "1", "2 3", "4"]),
        ("echo $1", ["echo", f"{UNKNOWN}$1{UNKNOWN}"]),
        ("echo $(hostname)", ["echo", f"{UNKNOWN}command output{UNKNOWN}"]),
        ("echo $((1 / 0))", ["echo", f"{UNKNOWN}$((1 / 0)){UNKNOWN}"]),
        ("echo it\\'s a\\\nb", ["echo", "it's", "a", "b"]),
        ("", []),
    ],
)
def test_shell_words(text: str, words: list[str]) -> None:
    # A lone command without arguments still counts as words only if one of them is an argument.
    assert list(script_words(text + "\n: --end").words) == [*words, ":", "--end"]


def test_hostile_scripts_end_quickly() -> None:
    bomb = "A=aaaaaaaaaa\n" + "A=$A$A\n" * 200 + "echo --x $A"
    assert UNKNOWN in script_words(bomb).words[-1]
    for piece in ("$((", "$(", "${", "(", "'", '"', "`", "A=(", "$((1+"):
        script_words(piece * 5_000 + " --end")
