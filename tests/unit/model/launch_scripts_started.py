"""Launch scripts in the idioms of public ones, and the fields that a person reads in them: how the run is started."""

from __future__ import annotations

from tests.unit.model.launch_scripts import TINY, WORK, Script

STARTS = (
    Script(
        "a command in a variable, run by eval",
        f"""DISTRIBUTED="--nproc_per_node 8 --nnodes 2"
CMD="torchrun $DISTRIBUTED pretrain_gpt.py {TINY} \\
    {WORK}"
CMD="$CMD --tensor-model-parallel-size 8"
echo $CMD
eval $CMD
""",
        {"devices": 16, "tp": 8},
    ),
    Script(
        "a command in a variable, run by srun and bash -c",
        f"""#!/bin/bash
#SBATCH --job-name=tiny
#SBATCH --nodes=4
#SBATCH --ntasks-per-node=8
#SBATCH --gpus-per-node=8
OPTIONS=" {TINY} {WORK} --use-distributed-optimizer"
LAUNCH="python -u pretrain_gpt.py ${{OPTIONS}} --pipeline-model-parallel-size $SLURM_NNODES"
srun -l --output=log bash -c "cd /work; ${{LAUNCH}} 2>&1 | tee out"
""",
        {"devices": 32, "pp": 4, "zero_stage": 1},
    ),
    Script(
        "a script that submits itself",
        f"""#!/bin/bash
#SBATCH -N 2
#SBATCH --gres=gpu:8
if [ -z "$SLURM_JOB_ID" ]; then
    sbatch "$0" "$@"
    exit 0
fi
torchrun --nproc_per_node 8 --nnodes $SLURM_NNODES pretrain_gpt.py {TINY} {WORK} --tensor-model-parallel-size 2
""",
        {"devices": 16, "tp": 2},
        variables={"SLURM_JOB_ID": "7"},
    ),
    Script(
        "a batch script in a here-document",
        f"""NODES=8
TP=4
sbatch <<EOF
#!/bin/bash
#SBATCH --nodes=$NODES
#SBATCH --gpus-per-node=8
srun torchrun --nproc_per_node 8 --nnodes $NODES pretrain_gpt.py {TINY} {WORK} --tensor-model-parallel-size $TP
EOF
""",
        {"devices": 64, "tp": 4},
    ),
    Script(
        "a here-document that becomes a sourced file",
        f"""cat > conf.sh <<'EOF'
TP=2
EXTRA="--recompute-granularity full --recompute-method uniform --recompute-num-layers 1"
EOF
. ./conf.sh
torchrun --nproc_per_node 8 pretrain_gpt.py {TINY} {WORK} --tensor-model-parallel-size $TP $EXTRA
""",
        {"tp": 2, "recompute": "full"},
    ),
    Script(
        "a sourced file beside the script",
        f"""DIR=$(cd "$(dirname "${{BASH_SOURCE[0]}}")" && pwd)
source "$DIR/models/tiny.sh"
torchrun --nproc_per_node 8 pretrain_gpt.py ${{MODEL_ARGS[@]}} {WORK} --pipeline-model-parallel-size 2
""",
        {"layers": 8, "hidden": 512, "pp": 2},
        files={"models/tiny.sh": f"MODEL_ARGS=({TINY})\n"},
    ),
    Script(
        "functions with locals and passed arguments",
        f"""common() {{
  local tp=${{1:-1}}
  COMMON=(--tensor-model-parallel-size "$tp" {WORK})
}}
run() {{
  common 4
  torchrun --nproc_per_node 8 pretrain_gpt.py "${{COMMON[@]}}" "$@"
}}
main() {{ run {TINY} --sequence-parallel; }}
main "$@"
""",
        {"tp": 4, "sp": True, "layers": 8},
        arguments=(),
    ),
    Script(
        "mpirun",
        f"""NP=64
HOSTS=hosts.txt
mpirun -np $NP --hostfile $HOSTS -x NCCL_DEBUG=WARN \\
  python pretrain_gpt.py {TINY} {WORK} --tensor-model-parallel-size 8
""",
        {"tp": 8, "layers": 8},
    ),
    Script(
        "deepspeed with a JSON of its own",
        f"""ZERO=1
DS=ds_config.json
cat <<EOT > $DS
{{ "train_micro_batch_size_per_gpu": 1, "zero_optimization": {{ "stage": $ZERO }} }}
EOT
deepspeed --num_nodes 2 --num_gpus 8 pretrain_gpt.py {TINY} {WORK} --deepspeed --deepspeed_config $DS \\
  --zero-stage $ZERO --tensor-model-parallel-size 2 --checkpoint-activations
""",
        {"tp": 2, "zero_stage": 1, "recompute": "full"},
    ),
    Script(
        "the first of several runs",
        f"""for PP in 2 4; do
  torchrun --nproc_per_node 8 pretrain_gpt.py {TINY} {WORK} --pipeline-model-parallel-size $PP
done
""",
        {"pp": 2, "launches": 2},
    ),
    Script(
        "options as elements of an array",
        f"""options=(
  "--tensor-model-parallel-size 2"
  "--context-parallel-size 2"
  '--cp-comm-type a2a'
  "--use-megatron-fsdp"
  "--data-parallel-sharding-strategy optim_grads_params"
  # "--sequence-parallel"
)
python3 -m torch.distributed.launch --nproc_per_node=8 pretrain_gpt.py {TINY} {WORK} ${{options[@]}}
""",
        {"devices": 8, "tp": 2, "cp": 2, "cp_kind": "all_to_all", "zero_stage": 3, "sp": None},
    ),
    Script(
        "mapfile and a here-string",
        f"""mapfile -t SIZES <<EOF
2
4
EOF
read -r MBS GBS <<< "2 128"
torchrun --nproc_per_node 8 pretrain_gpt.py {TINY} {WORK} --tensor-model-parallel-size ${{SIZES[0]}} \\
  --pipeline-model-parallel-size ${{SIZES[1]}} --micro-batch-size $MBS --global-batch-size $GBS
""",
        {"tp": 2, "pp": 4, "micro_batch_size": 2, "batch": 128},
    ),
    Script(
        "arguments set in place and shifted",
        f"""set -- 4 2 1e-4
TP=$1; shift
PP=$1; shift
torchrun --nproc_per_node 8 pretrain_gpt.py {TINY} {WORK} --tensor-model-parallel-size $TP \\
  --pipeline-model-parallel-size $PP --lr $1
""",
        {"tp": 4, "pp": 2},
    ),
    Script(
        "latent attention and experts in a quoted list",
        f"""MOE_FREQ='[0]*2+[1]*6'
torchrun --nproc_per_node 8 --nnodes 8 pretrain_gpt.py {TINY} {WORK} --multi-latent-attention --q-lora-rank 96 \\
  --kv-lora-rank 64 --qk-head-dim 32 --qk-pos-emb-head-dim 16 --v-head-dim 32 --num-experts 32 \\
  --moe-layer-freq "$MOE_FREQ" --moe-ffn-hidden-size 256 --moe-shared-expert-intermediate-size 256 \\
  --moe-router-topk 4 --expert-model-parallel-size 8 --mtp-num-layers 1 --recompute-granularity selective \\
  --recompute-modules mla_up_proj moe_act layernorm --optimizer-cpu-offload
""",
        {
            "attention": "mla",
            "experts": 32,
            "top_k": 4,
            "ep": 8,
            "devices": 64,
            "recompute_modules": ("mla_up_proj", "activation", "norm"),
            "optimizer_offload": True,
        },
    ),
    Script(
        "precision by a variable that nobody set",
        f"""PR=${{PR:-fp8}}
if [ $PR = fp16 ]; then
    pr="--fp16"
elif [ $PR = bf16 ]; then
    pr="--bf16"
elif [ $PR = fp8 ]; then
    pr="--bf16 --fp8-format hybrid"
fi
torchrun --nproc_per_node 8 pretrain_gpt.py {TINY} --micro-batch-size 1 --global-batch-size 8 --vocab-size 100 ${{pr}}
""",
        {"precision": "fp8", "batch": 8},
        unset=("PR",),
    ),
    Script(
        "precision-aware states and instances",
        f"""OPT=(
  --use-distributed-optimizer --num-distributed-optimizer-instances 2
  --use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16
  --overlap-grad-reduce --overlap-param-gather
)
torchrun --nproc_per_node=8 --nnodes=2 pretrain_gpt.py {TINY} {WORK} "${{OPT[@]}}"
""",
        {
            "optimizer": "adam_bf16_states",
            "zero_stage": 1,
            "dp_replicate": 2,
            "overlap_grad_reduce": True,
            "overlap_param_gather": True,
        },
    ),
    Script(
        "a script that starts another beside it",
        """export NNODES=2
bash ./run.sh 4
""",
        {"devices": 16, "tp": 4},
        files={
            "run.sh": f"torchrun --nproc_per_node 8 --nnodes ${{NNODES:-1}} pretrain_gpt.py {TINY} {WORK}"
            " --tensor-model-parallel-size $1\n"
        },
    ),
)
