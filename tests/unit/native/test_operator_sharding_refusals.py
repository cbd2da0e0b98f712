from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="sharding plans need the extra meshwright[torch]")

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import HashStore
from torch.distributed.tensor import Partial, Replicate, Shard

from planner.backends.native.trainer.operator_sharding.local_rules import contraction_rules, local_outputs
from planner.backends.native.trainer.operator_sharding.placements import placements_of, word_of
from planner.backends.native.trainer.operator_sharding.settings import RunSettings
from planner.backends.native.trainer.operator_sharding.traced_module import load_sharding_plan, module_source
from planner.backends.native.trainer.operator_sharding.train import train
from planner.errors import BackEndRefused, DocumentInvalid, NotFound
from planner.shard.sharding_plan import OperatorPlacement, ShardingPlan
from planner.shard.torch_graph.read_graph import operator_graph, traced_step
from tests.random_sharding import random_plan
from tests.sharding_modules import Dropout, TwoLayers, traced_module

aten = torch.ops.aten
SETTINGS = RunSettings(steps=1, device="cpu")


@pytest.fixture
def one_rank() -> Iterator[None]:
    dist.init_process_group("gloo", store=HashStore(), rank=0, world_size=1)
    yield
    dist.destroy_process_group()


def plan_of(kind: type) -> ShardingPlan:
    traced = traced_module(kind)
    return random_plan(operator_graph(traced_step(module_source(traced)), (1,)), traced, (1,), seed=1)


def _changed(plan: ShardingPlan, name: str, **values: object) -> ShardingPlan:
    def row(operator: OperatorPlacement) -> OperatorPlacement:
        return operator.model_copy(update=values) if operator.name == name else operator

    return plan.model_copy(update={"operators": tuple(row(each) for each in plan.operators)})


@pytest.mark.usefixtures("one_rank")
def test_a_plan_that_dtensor_does_not_follow_names_the_operator() -> None:
    plan = plan_of(TwoLayers)
    row = next(each for each in plan.operators if each.target == "aten.gelu.default")
    inputs = tuple(edge.model_copy(update={"needed": ("shard:0",)}) for edge in row.inputs)
    wrong = _changed(plan, row.name, inputs=inputs, outputs=(("shard:1",),))
    with pytest.raises(BackEndRefused, match=r"operator gelu .*\(shard:0\), the plan says \(shard:1\)"):
        train(wrong, SETTINGS)


@pytest.mark.usefixtures("one_rank")
def test_an_operator_that_the_plan_lacks_is_named() -> None:
    plan = plan_of(TwoLayers)
    with pytest.raises(BackEndRefused, match=r"operator gelu .* the plan does not know it"):
        train(plan.model_copy(update={"operators": [r for r in plan.operators if r.name != "gelu"]}), SETTINGS)


@pytest.mark.usefixtures("one_rank")
def test_random_numbers_are_refused() -> None:
    with pytest.raises(BackEndRefused, match="draws random numbers"):
        train(plan_of(Dropout), SETTINGS)


@pytest.mark.usefixtures("one_rank")
def test_another_module_and_another_world_size_are_refused() -> None:
    plan = plan_of(TwoLayers)
    grown = plan.traced.model_copy(update={"arguments": {"ffn": 64}})
    with pytest.raises(DocumentInvalid, match="its graph has changed"):
        train(plan.model_copy(update={"traced": grown}), SETTINGS)
    wide = plan.mesh[0].model_copy(update={"size": 2})
    with pytest.raises(DocumentInvalid, match="the plan is for 2 ranks, and 1 was started"):
        train(plan.model_copy(update={"mesh": (wide,)}), SETTINGS)


def test_a_file_that_is_no_plan_is_one_error(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        load_sharding_plan(tmp_path / "absent.json")
    (tmp_path / "other.json").write_text(json.dumps({"schema_version": 1}), "utf-8")
    with pytest.raises(DocumentInvalid, match="not a sharding plan"):
        load_sharding_plan(tmp_path / "other.json")


def test_words_are_dtensors_placements() -> None:
    words = ("replicate", "shard:2", "partial:sum", "partial:avg")
    placements = placements_of(words)
    assert placements == (Replicate(), Shard(2), Partial("sum"), Partial("avg"))
    assert tuple(map(word_of, placements)) == words
    with pytest.raises(DocumentInvalid, match="'shard:x' is not a placement"):
        placements_of(["shard:x"])


@pytest.mark.parametrize("seed", range(4))
def test_contraction_rules_are_those_of_the_arithmetic(seed: int) -> None:
    """Every rule run on two halves, its outputs joined as the rule says, gives the whole product."""
    torch.manual_seed(seed)
    equation = ("bsk,nk->bsn", "bsn,bsk->nk", "abh,ehf->eabf", "ab,b->a")[seed]
    sizes = dict(zip("abefhknsx", (2, 4, 2, 4, 2, 6, 4, 2, 2), strict=True))
    parts, _, _ = equation.partition("->")
    operands = [torch.randn([sizes[letter] for letter in part]) for part in parts.split(",")]
    whole = torch.einsum(equation, *operands)
    for rule in contraction_rules(equation):
        halves = [
            torch.einsum(equation, *(_half(each, word, rank) for each, word in zip(operands, rule.inputs, strict=True)))
            for rank in range(2)
        ]
        joined = sum(halves) if rule.outputs[0] == "partial:sum" else torch.cat(halves, int(rule.outputs[0][-1]))
        torch.testing.assert_close(joined, whole)


def _half(tensor: torch.Tensor, word: str, rank: int) -> torch.Tensor:
    if word.startswith("shard"):
        return tensor.chunk(2, int(word[-1]))[rank]
    return tensor * (rank == 0) if word == "partial:sum" else tensor


def test_two_axes_combine_and_a_stray_placement_is_refused() -> None:
    samples, whole = ("shard:0", "shard:0"), ("replicate", "replicate")
    assert local_outputs(aten.convolution.default, (), [samples, whole, whole]) == (samples,)
    assert local_outputs(aten.convolution.default, (), [("shard:2", "replicate"), whole]) is None
    assert local_outputs(aten.relu.default, (), [samples]) is None


def test_attention_is_cut_with_its_mask_or_beside_a_mask_for_all() -> None:
    """Halves of batch or heads, joined, are what the whole kernel gives; the mask is cut where it has them."""
    torch.manual_seed(0)
    kernel = aten._scaled_dot_product_flash_attention_for_cpu.default
    queries, keys, values = (torch.randn(2, 4, 8, 16) for _ in range(3))
    for shape, mask_word in (((2, 1, 8, 8), "shard:0"), ((1, 1, 8, 8), "replicate"), ((2, 4, 8, 8), "shard:1")):
        mask = torch.randn(shape)
        dim = 1 if mask_word == "shard:1" else 0
        words = [(f"shard:{dim}",)] * 3 + [(mask_word,)]
        outputs = local_outputs(kernel, (), words)
        assert outputs == ((f"shard:{dim}",),) * 2
        halves = [
            kernel(*(_half(each, word[0], rank) for each, word in zip((queries, keys, values), words, strict=False)),
                   attn_mask=_half(mask, mask_word, rank) if mask_word != "replicate" else mask)
            for rank in range(2)
        ]  # fmt: skip
        whole = kernel(queries, keys, values, attn_mask=mask)
        for index in range(2):
            torch.testing.assert_close(torch.cat([half[index] for half in halves], dim), whole[index])
    backward = aten._scaled_dot_product_flash_attention_for_cpu_backward.default
    assert local_outputs(backward, (), [("shard:0",)] * 7) == (("shard:0",),) * 3
    assert local_outputs(backward, (), [*[("shard:1",)] * 6, ("replicate",)]) == (("shard:1",),) * 3
    assert local_outputs(backward, (), [*[("shard:1",)] * 6, ("shard:2",)]) is None
