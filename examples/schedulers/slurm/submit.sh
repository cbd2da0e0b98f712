#!/usr/bin/env bash
# Where the job-submit plugin is not installed: ask first, then sbatch.  submit.sh QUESTION.json [sbatch options]
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
question=$(realpath "${1:?a question is needed: submit.sh QUESTION.json [sbatch options]}")
shift
nodes=$("${PYTHON:-python3}" "$here/plan_job.py" nodes "$question" --nodes "${NODES:-1-16}")
echo "this job is worth $nodes nodes" >&2
QUESTION=$question PLAN_JOB=$here/plan_job.py exec sbatch --nodes="$nodes" "$@" "$here/train.sbatch"
