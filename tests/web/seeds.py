"""The plans of the seeded service: few, real, and one of each kind; tests find them by their labels.

``dense``            Llama-3.1-70B on 64 H100, proved best
``five-chunks``      the same with five chunks a pipeline rank: a step of 10,240 actions
``dense-wide``       the same on 128 H100, to compare
``moe``              Mixtral 8x7B on 32 H100
``small``            Llama-3.1-8B on 8 H100, with a price
``pipelined``        the same with two pipeline ranks
``no-pipeline``      the same with one pipeline rank
``long``             Llama-3.1-70B with 2112 micro-batches on 8 pipeline ranks: a step of 50,688 actions
``measured``         Llama-3.1-8B on 8 H100, leaning on measurements that nobody made
``rack``             Mixtral 8x7B on two racks of GB200: a scale-up domain spans nodes
``huge``             Llama-3.1-405B on 16,384 H100; degrees are pinned, so that it is soon found
``older``            Llama-3.1-8B on 8 H100 for Megatron-LM, as an earlier release stored it, like the next two
``older-2021``       for Megatron-LM 2.5, for which no files are written
``older-free``       for no back-end at all
``infeasible``       a job: Llama-3.1-405B on 8 A100, which no plan fits
``mine``             a report on accuracy: runs of nine made-up sources, some with memory, one out of memory
``done``             a job that ended with a plan
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx

from planner.plan.plan import Plan
from planner.store import open_store
from tests.accuracy_rows import csv_text
from tests.web.measurements import MADE_UP, seed_measurements

ANSWER_S = 300.0
OLDER_FOLDER = Path(__file__).parents[1] / "golden" / "documents" / "v1"
OLDER = {"older": "megatron", "older-2021": "megatron-2021", "older-free": "any"}
"""Label -> plan as an earlier release stored it."""

Question = dict[str, Any]


def question(model: str, cluster: str, devices: int, batch: int, sequence: int, **more: Any) -> Question:
    """A body of ``POST /v1/plans``; the fastest plan, unless it says otherwise."""
    workload = {"global_batch_size": batch, "sequence_length": sequence}
    return {"model": model, "cluster": cluster, "devices": devices, "workload": workload, "prefer": "fastest", **more}


PRICED = {"minimize": "step_time", "price_per_device_hour": 2.5}
LONG_PINS = {"pp": 8, "tp": 8, "vpp": 1, "micro_batch_size": 1, "schedule": "zb_h1"}
DEEP = {"pins": {"tp": 8, "pp": 16}}
FLAT = {"pins": {"tp": 1, "pp": 1, "ep": 8}}
PLANS: dict[str, Question] = {
    "long": question("llama-3.1-70b", "dgx-h100", 64, 2112, 4096, constraints={"pins": LONG_PINS}),
    "huge": question("llama-3.1-405b", "dgx-h100", 16_384, 2048, 8192, constraints=DEEP, top_k=0),
    "rack": question("mixtral-8x7b", "gb200-nvl72", 144, 1152, 4096, constraints=FLAT, top_k=0),
    "small": question("llama-3.1-8b", "dgx-h100", 8, 64, 4096, objective=PRICED),
    "pipelined": question("llama-3.1-8b", "dgx-h100", 8, 64, 4096, constraints={"pins": {"pp": 2}}),
    "no-pipeline": question("llama-3.1-8b", "dgx-h100", 8, 64, 4096, constraints={"pins": {"pp": 1}}),
    "measured": question("llama-3.1-8b", "dgx-h100", 8, 64, 4096, profile=MADE_UP),
    "moe": question("mixtral-8x7b", "dgx-h100", 32, 256, 4096),
    "dense-wide": question("llama-3.1-70b", "dgx-h100", 128, 512, 8192),
    "recommended": question("llama-3.1-70b", "dgx-h100", 64, 512, 8192, prefer="recommended"),
    "dense": question("llama-3.1-70b", "dgx-h100", 64, 512, 8192),
    "five-chunks": question("llama-3.1-70b", "dgx-h100", 64, 512, 8192, constraints={"pins": {"pp": 4, "vpp": 5}}),
}
"""Label -> question; the last one is the newest plan."""
JOBS: dict[str, Question] = {
    "done": question("llama-3.1-8b", "dgx-h100", 16, 256, 8192),
    "infeasible": question("llama-3.1-405b", "dgx-a100-80g", 8, 512, 4096),
}
RUNS: list[dict[str, str]] = [
    {
        "id": f"{place}-{microbatch}-{degree}",
        "source": f"github:lab{place}/runs:table.md",
        "device": "H100-SXM-80GB" if place % 2 else "A100-SXM-80GB",
        "mbs": str(microbatch),
        "tp": str(degree),
        "step_time_s": str(round(2.0 + 0.7 * place + 0.3 * degree, 3)),
        "peak_mem_gib": str(30 + 5 * microbatch) if place < 4 else "",
    }
    for place in range(9)
    for microbatch in (1, 2)
    for degree in (2, 4, 8)
]
RUNS.append({"id": "died", "source": "github:lab0/runs:table.md", "mbs": "8", "step_time_s": "", "notes": "OOM"})
"""Changes of a plain run.  Their measurements are made up; what is predicted of them is real."""


def keep_older(database: str) -> None:
    """Store the plans of an earlier release in ``database``: no service of today makes such documents."""
    with open_store(database) as store:
        for label, name in OLDER.items():
            text = (OLDER_FOLDER / f"{name}.json").read_text(encoding="utf-8")
            plan = Plan.model_validate_json(text.removesuffix("\n"))
            store.save_plan(plan, 1.0)
            store.label_plan(label, plan.plan_id)


def seed(address: str) -> None:
    """Ask everything of the service at ``address``."""
    with httpx.Client(base_url=address, timeout=ANSWER_S) as client:
        seed_measurements(client)
        kept = client.put("/v1/accuracy/mine", json=accuracy_report(RUNS), headers={"If-None-Match": "*"})
        accepted(kept, "mine")
        for name, body in JOBS.items():
            asked = client.post("/v1/plans", json=body, headers={"Prefer": "respond-async"})
            wait_for_end(client, accepted(asked, name)["id"])
        for name, body in PLANS.items():
            accepted(client.put(f"/v1/labels/{name}", json={"plan": planned(client, name, body)}), name)


def accuracy_report(runs: Sequence[dict[str, str]]) -> Question:
    """What ``meshwright accuracy`` says of the runs: changes of a plain one."""
    with tempfile.TemporaryDirectory(prefix="meshwright-accuracy-") as folder:
        truth = Path(folder) / "truth.csv"
        truth.write_text(csv_text(*runs), encoding="utf-8")
        command = [sys.executable, "-m", "planner.cli.main", "accuracy", str(truth), "-o", "json", "--quiet"]
        report: Question = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
        return report


def planned(client: httpx.Client, name: str, body: Question) -> str:
    """The id of the plan; on a busy machine the search may have become a job."""
    found = accepted(client.post("/v1/plans", json=body), name)
    if "plan_id" not in found:
        wait_for_end(client, found["id"])
        found = accepted(client.get(f"/v1/jobs/{found['id']}"), name)
    plan: str = found.get("plan_id") or found["result_plan_id"]
    return plan


def wait_for_end(client: httpx.Client, job: str) -> None:
    """Return when the job has ended: its stream of events ends with it."""
    with client.stream("GET", f"/v1/jobs/{job}/events") as events:
        for _ in events.iter_lines():
            pass


def accepted(response: httpx.Response, name: str) -> Question:
    """The answer's content.  Raises RuntimeError for a refusal."""
    if response.is_error:
        raise RuntimeError(f"{name}: {response.status_code} {response.text}")
    found: Question = response.json()
    return found
