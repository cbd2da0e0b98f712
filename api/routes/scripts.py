"""``/v1/scripts:read``: a launch script as text, the prediction of its run, and its run beside a plan."""

from __future__ import annotations

import hashlib
from typing import Any

from anyio import to_thread
from fastapi import APIRouter, Request, Response

from api.access.auth import Reader
from api.errors import ServiceBusy
from api.http.departures import while_connected
from api.http.request_body import read_document
from api.routes.operations import add_operation
from api.service import Service, service_of
from api.solving.task_runner import TooLong
from planner.operations.script import READ_SCRIPT, ScriptRequest, read_sent, run_problem
from profiles.document import canonical_json

router = APIRouter(tags=["questions"])
EXAMPLE = """torchrun --nnodes 1 --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --bf16 \\
  --num-attention-heads 32 --seq-length 4096 --max-position-embeddings 4096 --vocab-size 32000 \\
  --tensor-model-parallel-size 2 --micro-batch-size 1 --global-batch-size 64 --use-distributed-optimizer"""


async def read_script(request: Request, caller: Reader) -> Response:
    """Computed in a process of the pool, then remembered; an estimate needs a key that may plan."""
    service = service_of(request)
    asked = await read_document(request, ScriptRequest, service.settings.body_limit_bytes)
    if asked.cluster is not None:
        caller.demand("plan")
    payload = await to_thread.run_sync(_payload, service, asked)
    key = hashlib.sha256(canonical_json([READ_SCRIPT.task, payload]).encode()).hexdigest()
    content = service.views.get(key)
    if content is None:
        try:
            work = service.quick.run(READ_SCRIPT.task, payload, service.settings.quick_s)
            content = await while_connected(request, work)
        except TooLong:
            raise ServiceBusy("this takes too long", hint="ask for a smaller model or cluster") from None
        service.views.keep(key, content)
    return Response(content, media_type="application/json")


def _payload(service: Service, asked: ScriptRequest) -> dict[str, Any]:
    """The request with the documents of its names.  Raises NotFound, FindingsInvalid, DocumentInvalid."""
    resolver, job = service.resolver, read_sent(asked)
    resolver.check_layers(job.model, "/text")
    problem = None
    if asked.cluster is not None:
        cluster = resolver.cluster(asked.cluster, asked.devices or job.num_devices)
        profile = resolver.profile(asked.profile, cluster.pools[0].device)
        problem = run_problem(asked, job, cluster, profile).model_dump(mode="json")
    return {
        "asked": asked.model_dump(mode="json"),
        "problem": problem,
        "plan": None if asked.plan is None else service.store.plan_text(asked.plan).body,
    }


add_operation(router, READ_SCRIPT, read_script, example={"text": EXAMPLE, "cluster": "dgx-h100"})
