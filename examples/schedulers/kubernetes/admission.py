"""Mutating admission: a JobSet that carries a planning question gets its nodes and its plan; a Kueue Workload, a note.

    admission.py < review.json                                one AdmissionReview on stdin, the answer on stdout
    admission.py --listen 0.0.0.0:8443 --cert F --key F       a webhook server (see webhook.yaml)

Annotations of the object that are read:

    meshwright.dev/question   the body of POST /v1/plans as JSON, without devices
    meshwright.dev/nodes      1-8 or 1,2,4: how many nodes it may get (default: what the object says)

Annotations that are written: ``meshwright.dev/plan``, ``meshwright.dev/step-time-s``, ``meshwright.dev/nodes-chosen``.
A JobSet also gets ``parallelism`` and ``completions``, its containers ``MESHWRIGHT_PLAN`` and ``MESHWRIGHT_SERVER``.
A Workload belongs to Kueue, which makes it again where it differs from its job, so only annotations are added there.

What cannot fit is refused; where the service does not answer the object passes as it is, with a warning.  The service
is $MESHWRIGHT_SERVER, the key $MESHWRIGHT_API_KEY.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import re
import ssl
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from api.client import Client, Patience
from planner.answers.throughput.choice import most_devices
from planner.errors import DocumentInvalid, MeshwrightError, NoFeasiblePlan
from planner.plan.plan import Plan

DOMAIN = "meshwright.dev"
SAME_FOR_A_CURVE = ("model", "cluster", "workload", "constraints", "profile")
ANSWER_S = 8.0
"""Longest answer of the service; choosing and planning take half of it each.  webhook.yaml gives us 15 s."""
REFUSED = frozenset({"document-invalid", "no-feasible-plan", "not-found", "backend-refused"})
"""Errors of the question itself; any other is ours, and no reason to hold a job up."""
LARGEST_REVIEW_BYTES = 3 * 2**20
MOST_COUNTS = 64

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Shape:
    """Where an object of a kind keeps what matters, as JSON pointers."""

    counts: tuple[str, ...]
    """Numbers of nodes; the first one is read."""
    pod: str
    """The pod's spec."""
    changes: bool
    """Whether counts and containers may be changed."""


SHAPES = {
    ("jobset.x-k8s.io", "JobSet"): Shape(
        tuple(f"/spec/replicatedJobs/0/template/spec/{name}" for name in ("parallelism", "completions")),
        "/spec/replicatedJobs/0/template/spec/template/spec",
        changes=True,
    ),
    ("kueue.x-k8s.io", "Workload"): Shape(("/spec/podSets/0/count",), "/spec/podSets/0/template/spec", changes=False),
}
DEVICES = re.compile(r"(nvidia|amd)\.com/gpu|huawei\.com/Ascend910|google\.com/tpu|aws\.amazon\.com/neuron")


def review(asked: Json, client: Client) -> Json:
    """The AdmissionReview with its answer; it never fails."""
    request = asked.get("request") or {}
    answer: Json = {"uid": request.get("uid", ""), "allowed": True}
    try:
        # A dry run may leave nothing behind, and the service keeps what it plans.
        patch = [] if request.get("dryRun") else list(changes(request.get("object") or {}, request, client))
        if patch:
            answer["patchType"] = "JSONPatch"
            answer["patch"] = base64.b64encode(json.dumps(patch).encode()).decode()
    except MeshwrightError as error:
        if error.slug in REFUSED:
            answer |= {"allowed": False, "status": {"code": 422, "message": one_line(error)}}
        else:
            answer["warnings"] = [f"meshwright: not planned: {one_line(error)}"[:250]]
    return {"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": answer}


def changes(thing: Json, request: Json, client: Client) -> Iterator[Json]:
    """The JSON patch (RFC 6902) for an object; nothing for one without a question, or with a plan already."""
    group = str(thing.get("apiVersion", "")).partition("/")[0]
    shape = SHAPES.get((group, str(thing.get("kind"))))
    notes = (thing.get("metadata") or {}).get("annotations") or {}
    text = notes.get(f"{DOMAIN}/question")
    if shape is None or text is None or f"{DOMAIN}/plan" in notes:
        return
    question = question_of(text)
    per_node = devices_per_node(found(thing, shape.pod))
    nodes = chosen_nodes(client, question, notes.get(f"{DOMAIN}/nodes"), found(thing, shape.counts[0]), per_node)
    asked = {"time_limit_s": ANSWER_S / 2, **question, "devices": nodes * per_node}
    plan = client.put_request(f"k8s-{request.get('uid', 'none')}", asked, wait_s=ANSWER_S / 2)
    written = {"plan": plan.plan_id, "step-time-s": f"{plan.step_time_s:.6g}", "nodes-chosen": f"{nodes}"}
    for name, value in written.items():
        yield {"op": "add", "path": f"/metadata/annotations/{DOMAIN}~1{name}", "value": value}
    if shape.changes:
        for path in shape.counts:
            # "add" also replaces, and a JobSet need not say both.
            yield {"op": "add", "path": path, "value": nodes}
        yield from variables(thing, shape, plan, client.address)


def variables(thing: Json, shape: Shape, plan: Plan, address: str) -> Iterator[Json]:
    """The plan's id and the service in the environment of every container."""
    wanted = [{"name": "MESHWRIGHT_PLAN", "value": plan.plan_id}, {"name": "MESHWRIGHT_SERVER", "value": address}]
    for index, container in enumerate(found(thing, shape.pod).get("containers", ())):
        names = {each["name"] for each in wanted}
        kept = [each for each in container.get("env") or [] if each.get("name") not in names]
        yield {"op": "add", "path": f"{shape.pod}/containers/{index}/env", "value": [*kept, *wanted]}


def chosen_nodes(client: Client, question: Json, allowed: str | None, said: Any, per_node: int) -> int:
    """The nodes that the job is worth among those allowed; without a choice, those that it says."""
    if allowed is None:
        if not isinstance(said, int) or said < 1:
            raise DocumentInvalid("how many nodes?", where=f"{DOMAIN}/nodes", hint="annotate it, for example 1-8")
        return said
    counts = node_counts(allowed)
    curve = client.throughput(
        {
            **{name: question[name] for name in SAME_FOR_A_CURVE if name in question},
            "device_counts": [nodes * per_node for nodes in counts],
            "budget_s": ANSWER_S / 2,
        }
    )
    chosen = most_devices(curve)
    if chosen is None:
        raise NoFeasiblePlan(f"the job fits on none of {allowed} nodes", binding="nodes", relaxations=("offer more",))
    return chosen.num_devices // per_node


def question_of(text: str) -> Json:
    """The annotation as a question.  Raises DocumentInvalid."""
    try:
        asked = json.loads(text)
    except ValueError as error:
        raise DocumentInvalid(f"the question is no JSON: {error}", where=f"{DOMAIN}/question") from None
    if not isinstance(asked, dict):
        raise DocumentInvalid("the question is no object", where=f"{DOMAIN}/question")
    return asked


def devices_per_node(pod: Json) -> int:
    """Accelerators that a pod asks for, all containers.  Raises DocumentInvalid where there are none."""
    limits = ((each.get("resources") or {}).get("limits") or {} for each in pod.get("containers", ()))
    total = sum(int(count) for each in limits for name, count in each.items() if DEVICES.fullmatch(name))
    if total < 1:
        raise DocumentInvalid(
            "the pods ask for no accelerators", where="resources.limits", hint="for example nvidia.com/gpu: 8"
        )
    return total


def node_counts(text: str) -> list[int]:
    """``1-8`` or ``1,2,4`` as numbers.  Raises DocumentInvalid."""
    span = re.fullmatch(r"([1-9]\d{0,5})-([1-9]\d{0,5})", text)
    if span:
        counts = list(range(int(span[1]), int(span[2]) + 1))
    else:
        counts = [int(part) for part in text.split(",") if re.fullmatch(r"[1-9]\d{0,5}", part)]
    if not 0 < len(counts) <= MOST_COUNTS:
        raise DocumentInvalid(f"{text!r} is no list of node counts", where=f"{DOMAIN}/nodes", hint="write 1-8 or 1,2,4")
    return counts


def found(thing: Any, pointer: str) -> Any:
    """What a JSON pointer finds; an empty object where there is nothing."""
    for part in pointer.split("/")[1:]:
        try:
            thing = thing[int(part)] if isinstance(thing, list) else thing[part]
        except (KeyError, IndexError, TypeError):
            return {}
    return thing


def one_line(error: MeshwrightError) -> str:
    """What, where and hint, as kubectl shows it."""
    place = f" ({error.where})" if error.where else ""
    return f"{error.what}{place}{f'; {error.hint}' if error.hint else ''}"


class Webhook(BaseHTTPRequestHandler):
    """POST /: an AdmissionReview; GET /healthz."""

    client: Client
    timeout = 30

    def do_GET(self) -> None:
        """For probes."""
        self._answer(200 if self.path == "/healthz" else 404, {})

    def do_POST(self) -> None:
        """Answer a review; what is none is refused."""
        length = self.headers.get("content-length", "")
        if not length.isdigit() or int(length) > LARGEST_REVIEW_BYTES:
            self.close_connection = True
            self._answer(413, {})
            return
        try:
            asked = json.loads(self.rfile.read(int(length)))
            if not isinstance(asked, dict):
                raise ValueError
        except (ValueError, RecursionError):
            self._answer(400, {})
            return
        self._answer(200, review(asked, self.client))

    def _answer(self, status: int, content: Json) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def serve(address: str, cert: str | None, key: str | None, client: Client) -> None:
    """Answer reviews until a signal comes."""
    host, _, port = address.rpartition(":")
    Webhook.client = client
    server = ThreadingHTTPServer((host, int(port)), Webhook)
    if cert:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(cert, key)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    print(f"listening on {host}:{server.server_address[1]}", flush=True)
    server.serve_forever()


def main() -> int:
    """One review, or a server."""
    found_words = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    found_words.add_argument("--listen", metavar="HOST:PORT")
    found_words.add_argument("--cert")
    found_words.add_argument("--key")
    asked = found_words.parse_args()
    # One more try within the time that an API server waits.
    patience = Patience(retries=1, longest_wait_s=1.0)
    try:
        with Client(os.environ.get("MESHWRIGHT_SERVER", ""), timeout_s=ANSWER_S, patience=patience) as client:
            if asked.listen:
                serve(asked.listen, asked.cert, asked.key, client)
            else:
                print(json.dumps(review(json.load(sys.stdin), client)))
    except MeshwrightError as error:
        print(f"error[{error.slug}]: {error}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        pass
    return 0


if __name__ == "__main__":
    sys.exit(main())
