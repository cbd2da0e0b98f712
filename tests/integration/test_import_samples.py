"""Every real file is imported by exactly the format that wrote it, or refused with a reason."""

from __future__ import annotations

import pytest

from profiles.errors import DocumentInvalid
from profiles.importing.detect import matching_formats
from profiles.importing.read_sources import guarded, read_sources
from profiles.importing.source_file import SourceFile
from profiles.observation_store.preparing import prepare
from tests.importing import SHARED_SAMPLES

NOT_RECOGNISED = "-"
REFUSED = "!"

EXPECTED: dict[str, str] = {
    "aceso/gpt_1_3B_mbs1_tp1_algo0.csv": "aceso",
    "aiconfigurator/a100_sxm_comm_nccl_2.27.3_nccl_perf.parquet": "aiconfigurator",
    "aiconfigurator/b300_sxm_comm_nccl_2.29.2_nccl_perf.parquet": "aiconfigurator",
    "aiconfigurator/gb200_comm_nccl_2.23_nccl_perf.parquet": "aiconfigurator",
    "aiconfigurator/gb200_comm_nccl_2.29.2_nccl_perf.parquet": "aiconfigurator",
    "aiconfigurator/gb200_comm_trtllm_1.3.0rc10_trtllm_alltoall_perf.parquet": "aiconfigurator",
    "aiconfigurator/h100_sxm_attention_vllm_0.14.0_context_attention_perf.parquet": "aiconfigurator",
    "aiconfigurator/system_a100_sxm.yaml": "aiconfigurator-system",
    "aiconfigurator/system_b200_sxm.yaml": "aiconfigurator-system",
    "aiconfigurator/system_b60.yaml": "aiconfigurator-system",
    "aiconfigurator/system_gb200.yaml": "aiconfigurator-system",
    "aiconfigurator/system_h100_sxm.yaml": "aiconfigurator-system",
    "aiconfigurator/system_l40s.yaml": "aiconfigurator-system",
    "ascend/gaudi_hccl_demo_format_NO_VALUES.txt": "gaudi-hccl-demo!",
    "ascend/msprof_cluster_communication.json": "msprof-communication",
    "ascend/ranktable_950_a_commented.json": "hccl-rank-table",
    "ascend/ranktable_950_b_commented.json": "hccl-rank-table",
    "ascend/ranktable_a2_commented.json": "hccl-rank-table",
    "ascend/ranktable_a3_superpod_v1.2_commented.json": "hccl-rank-table",
    "ascend/ranktable_a3_v1.0_commented.json": "hccl-rank-table",
    "chakra/astrasim_all_gather_4npus_1MB.0.et": "chakra!",
    "chakra/astrasim_all_gather_4npus_1MB.1.et": "chakra!",
    "chakra/astrasim_all_gather_4npus_1MB.2.et": "chakra!",
    "chakra/astrasim_all_gather_4npus_1MB.3.et": "chakra!",
    "chakra/chakra_1.0.2-chakra.0.0.4.tgz": "pytorch-execution-trace!",
    "chakra/chakra_feeder_tests_trace.tar.gz": "chakra",
    "chakra/chakra_json_trace.tar.gz": "chakra",
    "deepspeed/comms_log_summary_debug.txt": "deepspeed-comms",
    "galvatron/computation_profiling_bf16_llama2-7b_seqlen2048_all.json": "galvatron",
    "galvatron/galvatron_config_llama2-7b_1nodes_8gpus_per_node_36GB_bf16.json": "galvatron!",
    "galvatron/memory_profiling_bf16_llama2-7b_all.json": "galvatron",
    "galvatron/memory_profiling_bf16_llama2-7b_seqlen2048_all.json": "galvatron",
    "galvatron/overlap_coefficient.json": "galvatron!",
    "galvatron/p2p_bandwidth_2nodes_8gpus_per_node.json": "galvatron",
    "ib/superbench_ib_loopback_8M_size.log": "perftest",
    "ib/superbench_ib_loopback_all_sizes.log": "perftest",
    "jax/profile_demo.op_profile.json": "xprof-op-profile!",
    "jax/profile_demo.pod_viewer.json": "xprof-op-profile",
    "jax/tpu_inference_2.xplane.pb": "xla-xplane!",
    "jax/tracelens_all_gather_collective_mockup_df.csv": "xprof-op-profile!",
    "metis/DeviceType.A100_tp1_bs1.json": "metis",
    "nccl-debug/bigscience_all_reduce_bench-a100-n4.txt": "nccl-debug",
    "nccl-debug/bigscience_n16_32gb_all_reduce_bench.txt": "nccl-debug",
    "nccl-debug/bigscience_n1_16gb_all_reduce_bench.txt": "nccl-debug",
    "nccl-debug/mlperf_v3.1_dell_2x4H100_bert.txt": "nccl-debug",
    "nccl-tests/aws_p5_batch_allreduce_mpirun_tagged.txt": "nccl-tests",
    "nccl-tests/aws_p5_pyxis_prefixed_block2.txt": "nccl-tests",
    "nccl-tests/aws_trn1_nccom_allreduce.txt": "nccom-test",
    "nccl-tests/cscs_gh200_8gpu_cxi_allreduce_v2.17.1.txt": "nccl-tests",
    "nccl-tests/cscs_gh200_8gpu_tcp_allreduce_v2.17.1.txt": "nccl-tests",
    "nccl-tests/ebpf_5090_2rank_socket_allgather_v2.18.0.txt": "nccl-tests",
    "nccl-tests/ebpf_5090_allreduce_v2.18.0.txt": "nccl-tests",
    "nccl-tests/ebpf_5090_reducescatter_p3.txt": "nccl-tests",
    "nccl-tests/oci_h100_16gpu_allreduce.txt": "nccl-tests",
    "nccl-tests/superbench_nccl_allgather.log": "nccl-tests",
    "nccl-tests/superbench_nccl_allreduce.log": "nccl-tests",
    "nccl-tests/superbench_nccl_alltoall.log": "nccl-tests",
    "nccl-tests/superbench_nccl_reduce.log": "nccl-tests",
    "nccl-tests/superbench_nccl_reducescatter.log": "nccl-tests",
    "nccl-xml/aws_g5.48xl-topo.xml": "nccl-topo-xml!",
    "nccl-xml/aws_p4de-24xl-topo.xml": "nccl-topo-xml",
    "nccl-xml/azure_ncv4-graph.xml": "nccl-graph-xml",
    "nccl-xml/azure_ndv2-topo.xml": "nccl-topo-xml",
    "nccl-xml/azure_ndv4-topo.xml": "nccl-topo-xml",
    "nccl-xml/azure_ndv5-topo.xml": "nccl-topo-xml",
    "nccl-xml/oci_H100-topology-kubernetes.xml": "nccl-topo-xml",
    "nccl-xml/oci_H100-topology.xml": "nccl-topo-xml",
    "nccl-xml/oci_topo-flattened-b4.xml": "nccl-topo-xml",
    "nccl-xml/rccl_topo_16p1h.xml": "nccl-topo-xml",
    "nccl-xml/rccl_topo_4p2h.xml": "nccl-topo-xml",
    "nccl-xml/rccl_topo_8p_90a_1.xml": "nccl-topo-xml",
    "nccl-xml/rccl_topo_8p_rome_4n_1.xml": "nccl-topo-xml",
    "nccl-xml/rccl_topo_collnet_n4.xml": "nccl-topo-xml",
    "neusight/NVIDIA_H100_80GB_HBM3.json": "neusight!",
    "neusight/test_linear.csv": "neusight",
    "nnscaler/comp_torch.matmul.json": "nnscaler-comp",
    "nnscaler/mi200_comm_intra_16.json": "nnscaler-comm",
    "nsys/nsysai_mfu_2gpu_before.sqlite": "nsys-sqlite",
    "osu/azurehpc_imb_mpi1_pingpong.txt": "imb",
    "osu/cscs_mpich_osu_bw_cuda_v7.5.txt": "osu",
    "osu/cscs_openmpi_osu_alltoall_host_v7.5.txt": "osu",
    "osu/cscs_openmpi_osu_bw_cuda_DD_v7.5.txt": "osu",
    "osu/cscs_osu_bw_v6.2.txt": "osu",
    "osu/nwtnni_allreduce-cdls_osu-allreduce-ignore.txt": "osu",
    "osu/nwtnni_allreduce-p_osu-allreduce-recursive-doubling.txt": "osu",
    "p2p/nvbandwidth_readme_d2d_8gpu.txt": "nvbandwidth",
    "p2p/stas_p2pBandwidthLatencyTest_a100.txt": "p2p-bandwidth-latency-test",
    "p2p/stas_p2pBandwidthLatencyTest_h100.txt": "p2p-bandwidth-latency-test",
    "p2p/superbench_cublaslt_ncu.log": "ncu-csv",
    "p2p/superbench_cuda_memory_d2d_bw.log": "gpu-copy",
    "p2p/superbench_cuda_memory_d2h_bw.log": "gpu-copy",
    "p2p/superbench_gpcnet_network_test.log": "gpcnet",
    "p2p/superbench_gpu_copy_bw_performance.log": "gpu-copy",
    "p2p/superbench_gpu_stream.log": "gpu-stream",
    "p2p/superbench_nvbandwidth_results.log": "nvbandwidth",
    "p2p/superbench_rocm_memory_h2d_bw.log": "gpu-copy",
    "rocprof/tracelens_908_results.json.gz": "rocprof-json",
    "simai/ata_ratio.csv": "simai-ratio!",
    "simai/busbw.yaml": "simai-busbw",
    "simai/nic_ratio.csv": "simai-ratio!",
    "simumax/a100_pcie.json": "simumax",
    "topo/mlperf_v5.0_google_h200_topo_m_tabs_ansi.txt": "nvidia-smi-topo",
    "topo/msswift_metax_mx_smi_topo_n.txt": "mx-smi-topo",
    "topo/msswift_npu_smi_topo_910b.txt": "npu-smi-topo",
    "topo/stas_topo_h100_nv18_full.txt": "nvidia-smi-topo",
    "topo/stelline_esc8000a_topo_m.txt": "nvidia-smi-topo",
    "topo/thamada_MI300X_x4_smi.py": "-",
    "topology/ibexporter_ibnetdiscover_p_test.out": "ibnetdiscover",
    "topology/ibexporter_ibnetdiscover_p_test2.out": "ibnetdiscover",
    "topology/ibexporter_ibnetdiscover_p_test3.out": "ibnetdiscover!",
    "topology/ibexporter_perfquery.out": "-",
    "topology/superbench_ibstat.txt": "ibstat",
    "topology/topograph_expected_slurm_block_topology.conf": "slurm-topology-conf",
    "topology/topograph_expected_slurm_tree_topology.conf": "slurm-topology-conf",
    "topology/topograph_model_dual-xclr-irregular.yaml": "topograph",
    "topology/topograph_model_large.yaml": "topograph",
    "topology/topograph_model_small-tree.yaml": "topograph",
    "topology/topograph_netq_computeNodes.json": "netq",
    "topology/topograph_netq_topologyGraph.json": "netq",
    "torch/eleuther_sizing_mm.out": "eleuther-sizing",
    "torch/eleuther_sizing_transformer.out": "eleuther-sizing",
    "torch/hta_alexnet_trace.json.gz": "kineto",
    "torch/hta_cpu_only.pt.trace.json.gz": "kineto",
    "torch/hta_cupti_counters_trace.json.gz": "kineto!",
    "torch/hta_memory_timeline.raw.gz": "pytorch-memory-timeline",
    "torch/hta_nccl_data.json.gz": "kineto",
    "torch/hta_ns_resolution_rank0.pt.trace.json.gz": "kineto",
    "torch/hta_simple_add_et.json.gz": "pytorch-execution-trace!",
    "torch/hta_simple_add_trace.json.gz": "kineto",
    "torch/hta_triton_example.json.gz": "kineto",
    "torch/tracelens_h100_qwen.json.gz": "kineto",
    "ucx/cloudai_ucc_perftest_alltoall_cuda.txt": "ucc-perftest",
    "ucx/fxzjshm_ucx_perftest_b.txt": "ucx-perftest",
    "vidur/compute_a100_llama2-7b_mlp.csv": "vidur-compute",
    "vidur/compute_h100_phi-2_mlp.csv": "vidur-compute",
    "vidur/network_h100_dgx_send_recv.csv": "vidur-network",
}
"""Sample -> format; ``format!`` = recognised by it and refused, because the file holds no measurement or wiring;
``-`` = no format's file (an archive, a report of another kind)."""


def sample_path(name: str) -> SourceFile:
    if not SHARED_SAMPLES.exists():
        pytest.skip("../shared/samples is not here")
    return SourceFile(SHARED_SAMPLES / name)


@pytest.mark.parametrize("name", EXPECTED)
def test_exactly_the_expected_format_recognises_a_sample(name: str) -> None:
    expected = EXPECTED[name].rstrip(REFUSED)
    found = [each.name for each in matching_formats(sample_path(name).head())]
    # NCCL's own lines stand in the output of other tools; that format is asked last.
    found = found if len(found) < 2 else [each for each in found if each != "nccl-debug"]
    assert found == ([] if expected == NOT_RECOGNISED else [expected])


@pytest.mark.parametrize("name", EXPECTED)
def test_a_sample_is_imported_or_refused_with_a_reason(name: str) -> None:
    expected = EXPECTED[name]
    (result,) = read_sources([sample_path(name)])
    if expected == NOT_RECOGNISED or expected.endswith(REFUSED):
        assert isinstance(result.error, DocumentInvalid)
        assert result.error.hint
        assert (result.error.where or "").startswith(result.files[0].where)
        assert "of an unknown variant (" not in result.error.what, "an exception that the importer did not foresee"
        return
    assert result.error is None, str(result.error)
    imported, source = result.imported, result.source
    assert imported is not None
    assert source is not None
    prepared = guarded(result.files, lambda: prepare(imported, source, result.given))
    assert imported.topology is not None or sum(batch.record.num_observations for batch in prepared) > 0


def test_every_sample_is_in_the_table() -> None:
    if not SHARED_SAMPLES.exists():
        pytest.skip("../shared/samples is not here")
    present = {str(path.relative_to(SHARED_SAMPLES)) for path in SHARED_SAMPLES.glob("*/*") if path.is_file()}
    assert present == set(EXPECTED)
