"""The formats that are read: names and the module that reads each, in the order in which detection asks them.

A format that embeds another's text (a log with tables in it) stands after the more specific one.
"""

from __future__ import annotations

from importlib import import_module

from profiles.errors import NotFound
from profiles.importing.format import Format
from profiles.spelling import nearest_name

_PACKAGE = "profiles.importers"

MODULES: dict[str, str] = {
    "meshwright-measure": "meshwright_measure",
    # collectives
    "nccl-tests": "nccl_tests",
    "nccl-tests-json": "nccl_tests_json",
    "nccom-test": "nccom_test",
    "hccl-test": "hccl_test",
    "gaudi-hccl-demo": "gaudi_hccl_demo",
    "vtrain-collectives": "vtrain_collectives",
    "osu": "osu",
    "imb": "imb",
    "ucc-perftest": "ucc_perftest",
    "param-comms": "param_comms",
    "ds-bench": "ds_bench",
    "deepspeed-comms": "deepspeed_comms",
    "simai-busbw": "simai_busbw",
    "simai-ratio": "simai_ratio",
    "nccl-inspector": "nccl_inspector",
    # links
    "ucx-perftest": "ucx_perftest",
    "perftest": "perftest",
    "nvbandwidth": "nvbandwidth",
    "p2p-bandwidth-latency-test": "p2p_bandwidth_latency_test",
    "gpu-copy": "gpu_copy",
    "gpcnet": "gpcnet",
    "gpu-stream": "gpu_stream",
    # topology
    "nvidia-smi-topo-p2p": "nvidia_smi_topo_p2p",
    "nvidia-smi-topo": "nvidia_smi_topo",
    "rocm-smi-topo": "rocm_smi_topo",
    "npu-smi-topo": "npu_smi_topo",
    "mx-smi-topo": "mx_smi_topo",
    "nccl-graph-xml": "nccl_graph_xml",
    "nccl-topo-xml": "nccl_topo_xml",
    "hccl-rank-table": "hccl_rank_table",
    "ibnetdiscover": "ibnetdiscover",
    "ibstat": "ibstat",
    "slurm-topology-conf": "slurm_topology_conf",
    "slurm-topology-yaml": "slurm_topology_yaml",
    "topograph": "topograph",
    "netq": "netq",
    # traces
    "kineto": "kineto",
    "pytorch-execution-trace": "pytorch_execution_trace",
    "chakra": "chakra",
    "pytorch-memory-timeline": "pytorch_memory_timeline",
    "xla-xplane": "xla_xplane",
    "xla-trace": "xla_trace",
    "xprof-op-profile": "xprof_op_profile",
    "nsys-sqlite": "nsys_sqlite",
    "nsys-stats": "nsys_stats",
    "ncu-csv": "ncu_csv",
    "dlprof": "dlprof",
    "torch-npu-folder": "torch_npu_folder",
    "msprof-communication": "msprof_communication",
    "msprof-csv": "msprof_csv",
    "rocprof-json": "rocprof_json",
    "rocprof-csv": "rocprof_csv",
    # operators and layers
    "aiconfigurator": "aiconfigurator",
    "aiconfigurator-system": "aiconfigurator_system",
    "vidur-compute": "vidur_compute",
    "vidur-network": "vidur_network",
    "galvatron": "galvatron",
    "metis": "metis",
    "nnscaler-comm": "nnscaler_comm",
    "nnscaler-comp": "nnscaler_comp",
    "aceso": "aceso",
    "vtrain-truth": "vtrain_truth",
    "simumax": "simumax",
    "neusight": "neusight",
    "llmservingsim": "llmservingsim",
    "tvm-tuning-records": "tvm_tuning_records",
    "eleuther-sizing": "eleuther_sizing",
    "triton-benchmark": "triton_benchmark",
    # whole runs
    "deepspeed-flops-profiler": "deepspeed_flops_profiler",
    "megatron-log": "megatron_log",
    "mlperf-log": "mlperf_log",
    # last: its lines are mixed into the logs of everything above
    "nccl-debug": "nccl_debug",
}


def format_names() -> list[str]:
    """All formats, in detection order."""
    return list(MODULES)


def load_format(name: str) -> Format:
    """The format called ``name``.  Raises NotFound with the nearest spelling."""
    if name not in MODULES:
        near = nearest_name(name, MODULES)
        raise NotFound(
            f"there is no format '{name}'",
            where="--format",
            hint=f"did you mean '{near}'?" if near else "known: " + ", ".join(sorted(MODULES)),
        )
    found = import_module(f"{_PACKAGE}.{MODULES[name]}").FORMAT
    if not isinstance(found, Format):
        raise TypeError(f"{_PACKAGE}.{MODULES[name]}.FORMAT is not a Format")
    return found
