"""A measured row in our terms: model, cluster, deployment, traffic, and what was measured.

``mapped`` raises ``RowUnmapped`` with the reason where a row does not say enough, or says what cannot be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from planner.model.spec import ModelSpec
from planner.serving.evidence.row_subject import row_cluster, row_engine, row_formats, row_model
from planner.serving.evidence.truth import ServingRow
from planner.serving.evidence.unmapped import RowUnmapped
from planner.serving.layout import Deployment, InstanceGroup, InstanceLayout, InstanceSettings
from planner.serving.traffic import Lengths, ServingTraffic
from planner.serving.words import EngineName, Role
from profiles.cluster import Cluster

Kind = Literal[
    "aggregated", "disaggregated", "offline throughput", "static batch", "first token", "all at once", "rate"
]
KINDS: dict[str, Kind] = {
    "aggregated, fixed concurrency": "aggregated",
    "disaggregated P/D, fixed concurrency": "disaggregated",
    "offline max throughput": "offline throughput",
    "static batch throughput": "static batch",
    "first-token latency (prefill)": "first token",
    "latency, batch 1": "static batch",
    "online, fixed concurrency": "aggregated",
    "online, bench_serving random": "aggregated",
    "online, bench_serving": "aggregated",
    "online serving, 500 requests": "rate",
}
INFERENCE_MAX = re.compile(r"source_file=\d{4}-\d\d-\d\d|db-dump/")
"""Rows of InferenceMAX: lengths are uniform from 0.8 of what is asked, ten requests for each in flight, at most so many
running as in flight (its README: RANDOM_RANGE_RATIO 0.8, num-prompts CONC x 10, max-num-seqs CONC)."""
SHORTEST = 0.8
_UNIFORM_FROM_ONE = re.compile(r"asked random")
_REQUESTS = re.compile(r"(\d+) requests")
_EXPERT_TP = re.compile(r"moe_tp=(\d+)")
_WORKERS = re.compile(r"prefill workers=(\d+) bs=\d* moe_tp=(\d+); decode workers=(\d+) bs=\d* moe_tp=(\d+)")
_UNREAD = ("speculative", "--speculative", "mtp", "draft", "cpu-offload")
_MOST_TP = 8


@dataclass(frozen=True, slots=True)
class MeasuredPoint:
    """One measured point; times in seconds, None where the row has none."""

    row: ServingRow
    kind: Kind
    engine: EngineName
    release: str
    model: ModelSpec
    cluster: Cluster
    deployment: Deployment
    traffic: ServingTraffic
    load: int
    """Requests in flight, of a static batch, or sent at once."""
    waves: float
    """Requests of the run for each in flight: the first wave meets an empty engine."""
    ttft_s: float | None
    tpot_s: float | None
    output_tokens_per_s: float | None
    group: str
    """What was asked, whatever the layout: rows of one group are ranked against each other."""

    @property
    def device(self) -> str:
        """Catalogue name of the devices."""
        return self.cluster.pools[0].device.name


def mapped(row: ServingRow) -> MeasuredPoint:
    """Read one row."""
    kind = _kind(row)
    engine, release = row_engine(row)
    if any(word in row["notes"].lower() for word in _UNREAD):
        raise RowUnmapped("speculative decoding without a stated acceptance, or offload")
    model, cluster = row_model(row), row_cluster(row)
    inputs, outputs = row.number("isl"), row.number("osl")
    if inputs is None or outputs is None:
        raise RowUnmapped("the lengths are not stated")
    load = _load(row, kind)
    groups = _groups(row, model, kind, load)
    deployment = Deployment(engine=engine, release=release, formats=row_formats(row, model, engine), groups=groups)
    throughput = row.number("tokens_per_s_total")
    ttft, tpot = row.number("ttft_ms"), row.number("tpot_ms")
    subject = (row["source"], row["model"], row["device"], row["engine"], row["engine_version"], row["precision"])
    return MeasuredPoint(
        row=row,
        kind=kind,
        engine=engine,
        release=release,
        model=model,
        cluster=cluster,
        deployment=deployment,
        traffic=ServingTraffic(input_tokens=_lengths(row, inputs), output_tokens=_lengths(row, outputs)),
        load=load,
        waves=_waves(row, load),
        ttft_s=ttft / 1e3 if ttft else None,
        tpot_s=tpot / 1e3 if tpot else None,
        output_tokens_per_s=throughput,
        group="|".join((*subject, kind, row["isl"], row["osl"], row["batch_or_concurrency"])),
    )


def _kind(row: ServingRow) -> Kind:
    scenario = row["scenario"]
    if scenario.startswith("online, vllm bench serve"):
        return "aggregated" if row.whole("batch_or_concurrency") else "all at once"
    kind = KINDS.get(scenario)
    if kind is None:
        raise RowUnmapped(f"'{scenario}' is not a kind of run that is predicted")
    if kind == "rate" and row.number("request_rate") is None:
        return "all at once"
    return kind


def _lengths(row: ServingRow, asked: float) -> Lengths:
    if INFERENCE_MAX.search(row["notes"]) and asked > 1:
        return Lengths(kind="uniform", low=int(asked * SHORTEST), high=int(asked))
    if _UNIFORM_FROM_ONE.search(row["notes"]):
        return Lengths(kind="uniform", low=1, high=max(int(2 * asked), 1))
    return Lengths(mean=asked)


def _load(row: ServingRow, kind: Kind) -> int:
    stated = row.whole("batch_or_concurrency")
    if stated:
        return stated
    if kind == "offline throughput":
        return 1 << 20
    if kind == "rate":
        return 1
    requests = _REQUESTS.search(row["notes"] + row["scenario"])
    if kind == "all at once" and requests:
        return int(requests[1])
    raise RowUnmapped("the load is not stated")


def _waves(row: ServingRow, load: int) -> float:
    requests = _REQUESTS.search(row["notes"])
    if requests and load:
        return max(int(requests[1]) / load, 1.0)
    return 10.0


def _groups(row: ServingRow, model: ModelSpec, kind: Kind, load: int) -> tuple[InstanceGroup, ...]:
    if kind == "disaggregated":
        found = _WORKERS.search(row["notes"])
        if found is None:
            raise RowUnmapped("the numbers of prefill and decode instances are not stated")
        prefill, prefill_etp, decode, decode_etp = (int(number) for number in found.groups())
        return (
            _group(row, model, "prefill", prefill, prefill_etp, InstanceSettings()),
            _group(row, model, "decode", decode, decode_etp, InstanceSettings()),
        )
    settings = InstanceSettings()
    if INFERENCE_MAX.search(row["notes"]):
        settings = InstanceSettings(max_num_sequences=load)
    etp = _EXPERT_TP.search(row["notes"])
    return (_group(row, model, "aggregated", 1, int(etp[1]) if etp else 0, settings),)


def _group(
    row: ServingRow, model: ModelSpec, role: Role, instances: int, etp: int, settings: InstanceSettings
) -> InstanceGroup:
    """The layout.  Some InferenceMAX rows have tp and ep multiplied with each other: there ep = etp = devices."""
    tp, pp = row.whole("tp", role), row.whole("pp", role) or 1
    dp, ep = row.whole("attention_dp", role) or 1, row.whole("ep", role) or 1
    if tp is None:
        raise RowUnmapped("tp is not stated")
    if not model.has_experts:
        ep = 1
    elif etp > 1 and etp == ep and INFERENCE_MAX.search(row["notes"]):
        tp, dp = (etp, 1) if dp == 1 else (1, etp)
    if role == "aggregated" and tp * dp * pp > _MOST_TP:
        raise RowUnmapped("more devices than a node has for one aggregated instance")
    if (tp * dp) % ep:
        raise RowUnmapped(f"ep = {ep} does not divide the devices of a stage, {tp * dp}")
    layout = InstanceLayout(tp=tp, attention_dp=dp, pp=pp, ep=ep)
    return InstanceGroup(role=role, num_instances=instances, layout=layout, settings=settings)
