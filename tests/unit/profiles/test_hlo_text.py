# ruff: noqa: E501  instructions stand as XLA prints them
"""HLO instructions: operation, sizes by the full-tensor convention, groups in both notations, products."""

from __future__ import annotations

import pytest

from profiles.importing.hlo_text import HloCollective, collective, opcode, output_dtype, product_shape
from profiles.importing.xla_operations import Operation, operator_class


@pytest.mark.parametrize(
    ("instruction", "expected"),
    [
        (
            "%all-reduce.2 = bf16[1024,512]{1,0:T(8,128)} all-reduce(bf16[1024,512]{1,0} %x), replica_groups={{0,1},{2,3}}",
            HloCollective("all_reduce", 1024 * 512 * 2, 2, "bf16"),
        ),
        (
            "%all-reduce.1 = (f32[8]{0}, f32[4]{0}) all-reduce(%a, %b), replica_groups=[2,4]<=[8], to_apply=%add",
            HloCollective("all_reduce", 48, 4, "fp32"),
        ),
        (
            "%all-gather.5 = f32[64]{0} all-gather(f32[16]{0} %x), replica_groups=[1,4]<=[4], dimensions={0}",
            HloCollective("all_gather", 256, 4, "fp32"),
        ),
        (
            "%rs = f32[16]{0} reduce-scatter(f32[64]{0} %x), replica_groups={{0,1,2,3}}, dimensions={0}",
            HloCollective("reduce_scatter", 256, 4, "fp32"),
        ),
        (
            "%collective-permute.1 = s8[100]{0} collective-permute(s8[100]{0} %x), source_target_pairs={{0,1}}",
            HloCollective("send_recv", 100, 2, "s8"),
        ),
        (
            "%all-reduce = f32[8]{0} all-reduce(f32[8] %x), replica_groups={}",
            HloCollective("all_reduce", 32, None, "fp32"),
        ),
        ("%rs = f32[16]{0} reduce-scatter(f32[64]{0} %x), replica_groups={}", None),
        ("%all-gather-start.1 = (f32[16], f32[64]) all-gather-start(f32[16] %x)", None),
        ("%fusion = f32[8]{0} fusion(%x)", None),
        ("all-reduce", None),
        ("", None),
    ],
)
def test_collectives(instruction: str, expected: HloCollective | None) -> None:
    assert collective(instruction) == expected


def test_products_need_printed_operands() -> None:
    text = "%dot.3 = f32[128,512]{1,0} dot(f32[128,256]{1,0} %a, f32[256,512]{1,0} %b), lhs_contracting_dims={1}, rhs_contracting_dims={0}"
    assert product_shape(text) == {"m": 128, "n": 512, "k": 256}
    assert product_shape(text.replace("f32[128,256]{1,0} ", "")) == {}
    assert product_shape(text.replace("256,512", "99,512")) == {}
    assert (opcode(text), output_dtype(text)) == ("dot", "fp32")


@pytest.mark.parametrize(
    ("operation", "expected"),
    [
        (Operation("fusion.1", category="convolution fusion", text="%fusion.1 = bf16[8,8] fusion(%a)"), "matmul"),
        (
            Operation("c.1", category="convolution", text="%c.1 = f32[1] convolution(%a), window={size=3x3}"),
            "convolution",
        ),
        (Operation("fusion.9", category="loop fusion", text="%fusion.9 = f32[8] fusion(%a)"), "elementwise"),
        (Operation("copy.3", category="copy", text="%copy.3 = f32[8] copy(%a)"), "copy"),
        (
            Operation("splash_mha_fwd", category="custom-call", text="%splash_mha_fwd = f32[8] custom-call(%a)"),
            "attention",
        ),
        (Operation("all-gather-start.1", category="all-gather", text="%x = f32[8] all-gather-start(%a)"), "collective"),
        (Operation("nvjet_tst_192x192", kernel=True), "matmul"),
        (Operation("loop_add_fusion", kernel=True), "elementwise"),
        (Operation("ynn_fusion.1"), "kernel"),
    ],
)
def test_classes(operation: Operation, expected: str) -> None:
    assert operator_class(operation) == expected
