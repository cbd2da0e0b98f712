"""Clusters by name."""

from __future__ import annotations

from functools import cache
from typing import Any

from planner.answers.summaries import cluster_summary
from planner.operations.named import Listing, NamedRequest, NamedView, Nothing, shown
from planner.operations.operation import Operation, Session
from profiles import catalogue


def _clusters(session: Session, asked: Nothing) -> Listing:
    own = ({**cluster_summary(each), "name": name, "builtin": False} for name, each in session.named("cluster"))
    return Listing(items=(*map(_builtin, catalogue.builtin_clusters()), *own))


@cache
def _builtin(name: str) -> dict[str, Any]:
    return {**cluster_summary(catalogue.load_cluster(name)), "builtin": True}


LIST_CLUSTERS = Operation(
    name="list_clusters",
    summary="Clusters by name, with their devices",
    description="Built-in ones first; `devices` of a question scales them.",
    request=Nothing,
    answer=Listing,
    work=_clusters,
    path="/v1/clusters",
    tag="catalogue",
    errors=(),
    command="clusters list",
)
GET_CLUSTER = Operation(
    name="get_cluster",
    summary="One cluster, whole",
    description="Pools, links and fabric, with the source of every number; its ETag is its id.",
    request=NamedRequest,
    answer=NamedView,
    work=shown(catalogue.load_cluster),
    path="/v1/clusters/{name}",
    tag="catalogue",
    errors=(404,),
    served="own",
    reads_files=lambda asked: catalogue.is_cluster_path(asked.name),
    command="clusters show",
)
