"""Clusters by name."""

from __future__ import annotations

from planner.answers.summaries import cluster_summary
from planner.operations.named import Listing, NamedRequest, NamedView, Nothing, listed, shown
from planner.operations.operation import Operation
from profiles import catalogue

LIST_CLUSTERS = Operation(
    name="list_clusters",
    summary="Clusters by name, with their devices",
    description="Built-in ones first; `devices` of a question scales them.",
    request=Nothing,
    answer=Listing,
    work=listed(
        "cluster",
        catalogue.builtin_clusters,
        catalogue.load_cluster,
        lambda name, each: {**cluster_summary(each), "name": name},
    ),
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
