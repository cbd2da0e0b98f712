"""Launch scripts in the idioms of public ones, and the fields that a person reads in them: conditions and arrays."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TINY = "--num-layers 8 --hidden-size 512 --num-attention-heads 8 --seq-length 1024 --max-position-embeddings 1024"
WORK = "--micro-batch-size 1 --global-batch-size 64 --bf16 --vocab-size 32000"


@dataclass(frozen=True, slots=True)
class Script:
    """A script, what is said beside it, and what it says; ``files`` stand beside it."""

    name: str
    text: str
    expected: Mapping[str, Any]
    variables: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] | None = None
    files: Mapping[str, str] = field(default_factory=dict)
    unset: tuple[str, ...] = ()


BRANCHES = (
    Script(
        "arrays",
        f"""#!/bin/bash
GPUS_PER_NODE=8
NUM_NODES=4
DISTRIBUTED_ARGS=(
    --nproc_per_node $GPUS_PER_NODE # each node
    --nnodes $NUM_NODES
)
MODEL_ARGS=( {TINY} )
PARALLEL=(
\t--tensor-model-parallel-size 4
\t--pipeline-model-parallel-size 2
)
torchrun ${{DISTRIBUTED_ARGS[@]}} pretrain_gpt.py "${{MODEL_ARGS[@]}}" ${{PARALLEL[*]}} {WORK}
""",
        {"devices": 32, "tp": 4, "pp": 2, "layers": 8, "zero_stage": 0, "micro_batch_size": 1},
    ),
    Script(
        "associative array of model sizes",
        f"""declare -A LAYERS=([1b]=16 [7b]=32) HIDDEN
HIDDEN[1b]=2048
HIDDEN[7b]=4096
SIZE=${{SIZE:-7b}}
python -m torch.distributed.run --nproc-per-node=8 pretrain_gpt.py {TINY} {WORK} \\
  --num-layers ${{LAYERS[$SIZE]}} --hidden-size ${{HIDDEN[$SIZE]}} --num-attention-heads 32
""",
        {"devices": 8, "layers": 32, "hidden": 4096},
        unset=("SIZE",),
    ),
    Script(
        "defaults assigned in place",
        f""": "${{TP:=2}}"
: "${{PP:=4}}"
: "${{WORLD:=$((TP * PP * 4))}}"
: ${{GBS:=$(( WORLD / TP / PP * 8 ))}}
torchrun --nproc_per_node 8 --nnodes $((WORLD / 8)) pretrain_gpt.py {TINY} {WORK} --global-batch-size $GBS \\
  --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP
""",
        {"devices": 16, "tp": 2, "pp": 2, "batch": 32},
        variables={"PP": "2"},
        unset=("TP", "WORLD", "GBS"),
    ),
    Script(
        "a loop over long options",
        f"""TP=1
while [[ $# -gt 0 ]]; do
  case "$1" in
    --tp) TP="$2"; shift 2 ;;
    --fp8) FP8=1; shift ;;
    --) shift; break ;;
    *) echo "unknown $1"; exit 1 ;;
  esac
done
EXTRA=()
if [[ "$FP8" == 1 ]]; then EXTRA+=("--fp8-format hybrid" "--fp8-recipe tensorwise"); fi
torchrun --nproc_per_node 8 pretrain_gpt.py {TINY} {WORK} --tensor-model-parallel-size ${{TP}} "${{EXTRA[@]}}"
""",
        {"devices": 8, "tp": 4, "precision": "fp8"},
        arguments=("--tp", "4", "--fp8"),
    ),
    Script(
        "getopts",
        f"""PP=1
while getopts "t:p:s" opt; do
  case $opt in
    t) TP=$OPTARG ;;
    p) PP=$OPTARG ;;
    s) SP="--sequence-parallel" ;;
  esac
done
torchrun --nproc_per_node 8 pretrain_gpt.py {TINY} {WORK} --tensor-model-parallel-size $TP \\
  --pipeline-model-parallel-size $PP $SP
""",
        {"devices": 8, "tp": 2, "pp": 4, "sp": True},
        arguments=("-t", "2", "-s", "-p", "4"),
    ),
    Script(
        "a size of the first argument",
        f"""MODEL_SIZE=$1
if [ $MODEL_SIZE = 8B ]; then
    L=32; H=4096
elif [ $MODEL_SIZE = 70B ]; then
    L=80; H=8192
else
    echo "which size?" >&2
    exit 1
fi
torchrun --nproc_per_node 8 --nnodes ${{2:-8}} pretrain_gpt.py {TINY} {WORK} --num-layers $L --hidden-size $H \\
  --num-attention-heads 64 --group-query-attention --num-query-groups 8 --tensor-model-parallel-size 8
""",
        {"devices": 64, "layers": 80, "hidden": 8192, "kv_heads": 8, "etp": None},
        arguments=("70B", "8"),
    ),
    Script(
        "case with patterns",
        f"""NAME=llama3.1-70b-instruct
case "${{NAME,,}}" in
  *8b*) TP=1 ;;
  *70b* | *72b*) TP=4 ;;
  *) TP=8 ;;
esac
SIZE=${{NAME#*-}}
SIZE=${{SIZE%%-*}}
[ "$SIZE" = 70b ] && PP="--pipeline-model-parallel-size 4" || PP=""
torchrun --nproc_per_node 8 --nnodes 2 pretrain_gpt.py {TINY} {WORK} --tensor-model-parallel-size $TP $PP
""",
        {"devices": 16, "tp": 4, "pp": 4},
    ),
    Script(
        "switches by alternative values",
        f"""SP=1
OFFLOAD=
RC=selective
torchrun --nproc_per_node 8 pretrain_gpt.py {TINY} {WORK} --tensor-model-parallel-size 8 \\
  ${{SP:+--sequence-parallel}} ${{OFFLOAD:+--optimizer-cpu-offload}} ${{RC:+--recompute-granularity $RC}} \\
  --use-distributed-optimizer ${{OVERLAP---overlap-grad-reduce}}
""",
        {
            "tp": 8,
            "sp": True,
            "optimizer_offload": None,
            "recompute": "selective",
            "recompute_modules": ("attention_core",),
            "overlap_grad_reduce": True,
        },
        unset=("OVERLAP",),
    ),
    Script(
        "arithmetic of the batch",
        f"""TP=2 PP=2 CP=2
NGPU=$((8 * 4))
DP=$(( NGPU / (TP * PP * CP) ))
ACC=16
MBS=2
GBS=$(expr $DP \\* $ACC \\* $MBS)
torchrun --nproc_per_node 8 --nnodes $((NGPU / 8)) pretrain_gpt.py {TINY} {WORK} --micro-batch-size $MBS \\
  --global-batch-size $GBS --tensor-model-parallel-size $TP --pipeline-model-parallel-size $PP \\
  --context-parallel-size $CP --cp-comm-type p2p
""",
        {"devices": 32, "tp": 2, "pp": 2, "cp": 2, "cp_kind": "ring", "batch": 128, "micro_batch_size": 2},
    ),
    Script(
        "switches added by conditions on numbers",
        f"""TP=4; EP=8; PP=1
ARGS="{TINY} {WORK}"
(( TP > 1 )) && ARGS+=" --sequence-parallel"
if (( EP > 1 )) && [[ $PP -eq 1 ]]; then
    ARGS="$ARGS --num-experts 16 --expert-model-parallel-size $EP --expert-tensor-parallel-size 1"
fi
if ! [ "$PP" -gt 1 ]; then ARGS="$ARGS --use-distributed-optimizer"; fi
torchrun --nproc_per_node 8 --nnodes 4 pretrain_gpt.py $ARGS --tensor-model-parallel-size $TP
""",
        {"devices": 32, "tp": 4, "sp": True, "ep": 8, "etp": 1, "experts": 16, "zero_stage": 1},
    ),
    Script(
        "sequence parallelism at tp 1 and experts split as tp",
        f"""MOE="--num-experts 8 --moe-router-topk 1 --moe-ffn-hidden-size 1024 --moe-token-dispatcher-type alltoall"
torchrun --nproc_per_node 8 pretrain_gpt.py {TINY} {WORK} $MOE --sequence-parallel --expert-model-parallel-size 4
""",
        {"tp": None, "sp": None, "etp": None, "ep": 4, "experts": 8, "top_k": 1},
    ),
    Script(
        "a layout with repetition",
        f"""LAYOUT="Et|(tt|)*3tL"
torchrun --nproc_per_node 8 pretrain_gpt.py {TINY} {WORK} --pipeline-model-parallel-size 5 \\
  --pipeline-model-parallel-layout "$LAYOUT"
""",
        {"pp": 5, "chunks": (1, 2, 2, 2, 1), "vpp": None},
    ),
    Script(
        "a layout of several chunks a stage",
        f"""torchrun --nproc_per_node 8 pretrain_gpt.py {TINY} {WORK} --pipeline-model-parallel-size 2 \\
  --pipeline-model-parallel-layout 'Ett|t*3|tt|tL' --microbatch-group-size-per-virtual-pipeline-stage 2
""",
        {"pp": 2, "chunks": (2, 3, 2, 1), "vpp": 2, "schedule": "interleaved", "microbatch_group_size": 2},
    ),
    Script(
        "first and last stage shorter",
        f"""PIPE=(--pipeline-model-parallel-size 4 --decoder-first-pipeline-num-layers 1
      --decoder-last-pipeline-num-layers 1)
torchrun --nproc_per_node 8 pretrain_gpt.py {TINY} {WORK} "${{PIPE[@]}}"
""",
        {"pp": 4, "chunks": (1, 3, 3, 1)},
    ),
    Script(
        "a loop that builds a mixture",
        f"""BLEND=""
for i in 0 1 2; do
  BLEND="$BLEND 0.$((i + 1)) /data/part_$i"
done
for s in "--bf16" "--swiglu"; do FLAGS+=("$s"); done
torchrun --nproc_per_node 8 pretrain_gpt.py {TINY} {WORK} --data-path $BLEND ${{FLAGS[@]}}
""",
        {"devices": 8, "precision": "bf16", "gated": True, "ffn": 1344},
    ),
    Script(
        "a ternary and a while loop",
        f"""P=1
while [ $((P * 2)) -le 6 ]; do P=$((P * 2)); done
V=$(( P > 2 ? 2 : 1 ))
torchrun --nproc_per_node 8 pretrain_gpt.py {TINY} {WORK} --pipeline-model-parallel-size $P \\
  --num-virtual-stages-per-pipeline-rank $V
""",
        {"pp": 4, "vpp": 2, "microbatch_group_size": 4},
    ),
)
