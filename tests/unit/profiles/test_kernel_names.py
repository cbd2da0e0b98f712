"""Kernel names of several vendors and frameworks fall into the right operator class."""

from __future__ import annotations

import pytest

from profiles.importing.duration_statistics import Durations
from profiles.importing.kernel_names import collective_operation, kernel_class


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn", "matmul"),
        ("ampere_sgemm_128x64_relu_nn", "matmul"),
        ("nvjet_tst_192x192_64x4_2x1_v_bz_coopB_bias_TNN", "matmul"),
        ("cutlass3x_sm100_tensorop_s64x256x32gemm_f8_f8_f32_f16_f16_64x256x128_bias_f16_relu", "matmul"),
        ("void cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>(T1)", "matmul"),
        ("Cijk_Alik_Bljk_BBS_BH_Bias_HA_S_SAV_UserArgs_MT64x32x256", "matmul"),
        ("MatMulV2", "matmul"),
        ("GroupedMatmul", "grouped_matmul"),
        ("void flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4, cutlass::bfloat16_t>>", "attention"),
        ("void cutlass::device_kernel<flash::FlashAttnFwdSm90<cutlass::bfloat16_t>>", "attention"),
        ("FlashAttentionScoreGrad", "attention"),
        ("attn_fwd", "attention"),
        ("bwd_kernel_fuse", "attention"),
        ("void vllm::paged_attention_v2_kernel<half>", "decode_attention"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "collective"),
        ("hcom_allReduce__501_0@6297232067196334501", "collective"),
        ("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float>", "norm"),
        ("void rms_norm_kernel<c10::BFloat16>", "norm"),
        ("lpnorm_cleanup<float>", "other"),
        ("void (anonymous namespace)::softmax_warp_forward<float>", "softmax"),
        ("void nll_loss_forward_reduce_cuda_kernel_2d<float>", "cross_entropy"),
        ("void multi_tensor_apply_kernel<TensorListMetadata<4>, AdamFunctor<float>>", "optimizer"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::bfloat16_copy_kernel_cuda>", "copy"),
        ("void at::native::vectorized_elementwise_kernel<4, GeluCUDAKernelImpl>", "activation"),
        ("void at::native::vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>", "elementwise"),
        ("triton_poi_fused_add_0", "elementwise"),
        ("sm90_xmma_fprop_implicit_gemm_bf16bf16", "convolution"),
        ("convert_something", "kernel"),
        ("my_kernel", "kernel"),
        ("", "kernel"),
    ],
)
def test_names_fall_into_their_class(name: str, expected: str) -> None:
    assert kernel_class(name) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "all_reduce"),
        ("ncclKernel_ReduceScatter_RING_LL", "reduce_scatter"),
        ("ncclDevKernel_SendRecv", "send_recv"),
        ("hcom_broadcast__501_0", "broadcast"),
        ("hcom_alltoallv__", "all_to_all"),
        ("collective-permute.3", "send_recv"),
        ("ncclDevKernel_Generic_1", "unknown"),
    ],
)
def test_collective_kernels_name_their_operation(name: str, expected: str) -> None:
    assert collective_operation(name) == expected


def test_percentiles_interpolate_between_neighbours() -> None:
    timing = Durations([5000, 1000, 2000, 4000, 3000]).timing(1e9)
    assert timing.statistic == "median"
    assert timing.num_samples == 5
    assert timing.time_s == pytest.approx(3e-6)
    spread = [timing.min_s, timing.p10_s, timing.p90_s, timing.max_s]
    assert spread == pytest.approx([1e-6, 1.4e-6, 4.6e-6, 5e-6])


def test_one_duration_is_single_and_zero_is_refused() -> None:
    assert Durations([7]).timing(1e9).statistic == "single"
    with pytest.raises(ValueError, match="zero"):
        Durations([0, 0]).timing(1e9)
