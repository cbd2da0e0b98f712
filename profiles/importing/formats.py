"""The formats that are read: names and the module that reads each, in the order in which detection asks them.

A format that embeds another's text (a log with tables in it) stands after the more specific one.
"""

from __future__ import annotations

from importlib import import_module

from profiles.errors import NotFound
from profiles.importing.format import Format
from profiles.spelling import nearest_name

_PACKAGE = "profiles.importers"

_BY_SUBJECT = {
    "our own": "meshwright-measure",
    "collectives": (
        "nccl-tests nccl-tests-json nccom-test hccl-test gaudi-hccl-demo vtrain-collectives osu imb "
        "ucc-perftest param-comms ds-bench deepspeed-comms simai-busbw simai-ratio nccl-inspector"
    ),
    "links": "ucx-perftest perftest nvbandwidth p2p-bandwidth-latency-test gpu-copy gpcnet gpu-stream",
    "topology": (
        "nvidia-smi-topo-p2p nvidia-smi-topo rocm-smi-topo npu-smi-topo mx-smi-topo nccl-graph-xml "
        "nccl-topo-xml hccl-rank-table ibnetdiscover ibstat slurm-topology-conf slurm-topology-yaml "
        "topograph netq"
    ),
    "traces": (
        "kineto pytorch-execution-trace chakra pytorch-memory-timeline xla-xplane xla-trace "
        "xprof-op-profile nsys-sqlite nsys-stats ncu-csv dlprof torch-npu-folder msprof-communication "
        "msprof-csv rocprof-json rocprof-csv"
    ),
    "operators and layers": (
        "aiconfigurator aiconfigurator-system vidur-compute vidur-network galvatron metis nnscaler-comm "
        "nnscaler-comp aceso vtrain-truth simumax neusight llmservingsim tvm-tuning-records "
        "eleuther-sizing triton-benchmark"
    ),
    "whole runs": "deepspeed-flops-profiler megatron-log mlperf-log",
    # last: its lines are mixed into the logs of everything above
    "logs of communication": "nccl-debug",
}
NAMES: tuple[str, ...] = tuple(" ".join(_BY_SUBJECT.values()).split())
"""In detection order; the module of a format has its name."""


def format_names() -> list[str]:
    """All formats, in detection order."""
    return list(NAMES)


def load_format(name: str) -> Format:
    """The format called ``name``.  Raises NotFound with the nearest spelling."""
    if name not in NAMES:
        near = nearest_name(name, NAMES)
        raise NotFound(
            f"there is no format '{name}'",
            where="--format",
            hint=f"did you mean '{near}'?" if near else "known: " + ", ".join(sorted(NAMES)),
        )
    module = import_module(f"{_PACKAGE}.{name.replace('-', '_')}")
    found = module.FORMAT
    if not isinstance(found, Format):
        raise TypeError(f"{module.__name__}.FORMAT is not a Format")
    return found
