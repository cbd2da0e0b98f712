#!/usr/bin/env bash
# What slurmctld runs: address and key from a file that only it can read, then plan_job.py.
#   /etc/meshwright/client.env:  MESHWRIGHT_SERVER=https://...   MESHWRIGHT_API_KEY=mw_...
set -euo pipefail
environment=${MESHWRIGHT_ENVIRONMENT:-/etc/meshwright/client.env}
if [ -r "$environment" ]; then set -a; . "$environment"; set +a; fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
exec "${MESHWRIGHT_PYTHON:-python3}" "$here/plan_job.py" "$@"
