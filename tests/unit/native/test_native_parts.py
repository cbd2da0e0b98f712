from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import get_args

import pytest

pytest.importorskip("torch", reason="the native trainer needs the extra meshwright[torch]")

import torch

from planner.backends.native.capabilities import ACTIVATION_NAMES, RECOMPUTE_MODULES
from planner.backends.native.trainer.data import SyntheticTokens, check_tokens, sample_indices, token_source
from planner.backends.native.trainer.feed_forward import ACTIVATIONS
from planner.backends.native.trainer.initialize import initialize
from planner.backends.native.trainer.loss import TokenLoss
from planner.backends.native.trainer.mesh import coordinates, dense_grid, expert_grid, rank_grid
from planner.backends.native.trainer.model import count_parameters, on_meta, whole_model
from planner.backends.native.trainer.pipeline import SEVERAL, SINGLE
from planner.backends.native.trainer.plan_file import check_world_size, load_plan, refuse_unrunnable
from planner.backends.native.trainer.positions import local_positions
from planner.backends.native.trainer.recompute import KEEP_ALL, layer_choices
from planner.backends.rules.pipeline import interleaved_group_size
from planner.errors import BackEndRefused, DocumentInvalid, NotFound
from planner.model.parameters import total_parameters
from planner.model.spec import ModelSpec
from planner.plan.plan import ChunkPlan
from planner.strategy.schedules import ScheduleName
from planner.strategy.strategy import RecomputeModule, Strategy
from tests.native_models import tiny_gpt2, tiny_llama, tiny_plan, tiny_qwen3_moe
from tests.plan_factory import make_mla_model, make_plan

REPOSITORY = Path(__file__).parents[3]
MODELS = [tiny_llama(), tiny_llama(tie_embeddings=True), tiny_gpt2(), tiny_qwen3_moe(), tiny_qwen3_moe(shared=32)]


def test_capabilities_name_what_the_trainer_has() -> None:
    assert set(ACTIVATIONS) == ACTIVATION_NAMES
    assert set(SINGLE) | set(SEVERAL) == set(get_args(ScheduleName))
    # The trainer builds no latent attention (rule M1), whose projections the last module is.
    assert set(get_args(RecomputeModule)) - {"mla_up_proj"} == RECOMPUTE_MODULES


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_parameters_are_those_of_the_planner(model: ModelSpec) -> None:
    assert count_parameters(on_meta(model, whole_model(model))) == total_parameters(model)


def _values(model: ModelSpec, chunk: ChunkPlan, seed: int = 0) -> dict[str, torch.Tensor]:
    module = on_meta(model, chunk)
    module.to_empty(device="cpu")
    module.tie()
    initialize(module, torch.device("cpu"), seed)
    return dict(module.named_parameters())


def test_initial_values_follow_from_the_name_and_the_seed() -> None:
    model = tiny_qwen3_moe()
    whole = _values(model, whole_model(model))
    part = _values(model, ChunkPlan(chunk=1, first_layer=2, num_layers=2, has_head=True))
    assert part.keys() < whole.keys()
    assert all(torch.equal(value, whole[name]) for name, value in part.items())
    other = _values(model, whole_model(model), seed=1)
    assert not torch.equal(other["head.weight"], whole["head.weight"])
    experts = whole["layers.2.feed_forward.experts.up"].detach()
    assert len({expert.sum().item() for expert in experts}) == 8


def test_padding_rows_of_a_table_are_zero() -> None:
    model = tiny_llama()
    module = on_meta(model, whole_model(model), rows_multiple=8)
    module.to_empty(device="cpu")
    initialize(module, torch.device("cpu"), 0)
    table = dict(module.named_parameters())["embedding.weight"]
    assert table.shape == (136, 64)
    assert table[131:].abs().max() == 0
    assert torch.equal(table[:131], _values(model, whole_model(model))["embedding.weight"])


def test_tp_is_innermost_and_pp_outermost() -> None:
    grid = rank_grid(Strategy(tp=2, cp=2, cp_kind="ring", pp=2, dp_shard=2))
    assert grid[0, 0, 0, 0].tolist() == [0, 1]
    assert grid[0, 0, 0, :, 0].tolist() == [0, 2]
    assert grid[0, 0, :, 0, 0].tolist() == [0, 4]
    assert grid[:, 0, 0, 0, 0].tolist() == [0, 8]


def test_the_other_axis_order_puts_dp_outside() -> None:
    strategy = Strategy(tp=2, pp=2, dp_shard=2, axis_order="tp-cp-ep-pp-dp")
    grid = rank_grid(strategy)
    assert grid[:, 0, 0, 0, 0].tolist() == [0, 2]
    assert grid[0, 0, :, 0, 0].tolist() == [0, 4]
    here = coordinates(strategy, 6)
    assert (here.pp, here.dp_shard, here.tp) == (1, 1, 0)


@pytest.mark.parametrize("zero_stage", [0, 1, 3])
def test_every_rank_is_once_in_both_grids(zero_stage: int) -> None:
    strategy = Strategy(tp=2, sp=True, ep=4, pp=2, dp_replicate=2, dp_shard=4, zero_stage=zero_stage)
    for grid in (dense_grid(strategy), expert_grid(strategy)):
        assert sorted(grid.flatten().tolist()) == list(range(32))
    assert expert_grid(strategy)[0, 0, 0].tolist() == [0, 1, 2, 3]
    replicate, shard = (8, 1) if zero_stage == 0 else (2, 4)
    assert dense_grid(strategy).shape == (2, replicate, shard, 2)


@pytest.mark.parametrize("head_tail", [True, False])
def test_context_parts_cover_the_sequence_once(head_tail: bool) -> None:
    parts = [local_positions(24, 3, rank, head_tail=head_tail) for rank in range(3)]
    assert sorted(torch.cat(parts).tolist()) == list(range(24))
    seen = [int((part + 1).sum()) for part in parts]
    assert (len(set(seen)) == 1) == head_tail  # head and tail together see equally many keys


def test_samples_of_a_step_are_dealt_once() -> None:
    strategy = Strategy(dp_replicate=2, dp_shard=2, micro_batch_size=2, num_microbatches=3)
    dealt = [index for rank in range(4) for index in sample_indices(strategy, coordinates(strategy, rank), step=5)]
    assert sorted(dealt) == list(range(120, 144))


def test_synthetic_tokens_depend_on_index_and_seed_alone() -> None:
    tokens = SyntheticTokens(16, 100, seed=3)
    assert torch.equal(tokens.samples([7, 9])[1], tokens.samples([9])[0])
    assert not torch.equal(tokens.samples([7]), SyntheticTokens(16, 100, seed=4).samples([7]))
    steps = tokens.samples([7]).diff() % 100
    assert 1 <= int(steps.min()) <= int(steps.max()) <= 4


@pytest.mark.parametrize(
    "tokens",
    [
        torch.zeros(2, 16, dtype=torch.int64),
        torch.zeros(2, 17, dtype=torch.int32),
        torch.full((2, 17), 100, dtype=torch.int64),
        torch.full((2, 17), -1, dtype=torch.int64),
    ],
)
def test_unusable_samples_are_refused(tokens: torch.Tensor) -> None:
    with pytest.raises(DocumentInvalid, match="the loader gave"):
        check_tokens(tokens, 2, 16, 100)


@pytest.mark.parametrize("name", ["nothere", "nothere:x", "json:nothere", ":", "a b:c"])
def test_a_missing_loader_is_one_clear_error(name: str) -> None:
    with pytest.raises(DocumentInvalid, match="no data loader"):
        token_source(name, 16, 100, 0)


def test_loss_ignores_padded_logits_and_divides_by_microbatches() -> None:
    logits = torch.randn(2, 4, 12)
    targets = torch.randint(0, 10, (2, 4))
    padded = TokenLoss(10, 1)(logits, targets)
    exact = torch.nn.functional.cross_entropy(logits[..., :10].flatten(0, 1), targets.flatten())
    assert padded.item() == pytest.approx(exact.item())
    assert TokenLoss(10, 4)(logits, targets).item() == pytest.approx(exact.item() / 4)


def test_only_the_first_layers_of_each_chunk_are_recomputed() -> None:
    plan = make_plan(
        Strategy(pp=2, vpp=2, schedule="zbv", num_microbatches=4, recompute="full"),
        recompute_layers_per_chunk=(1, 0, 2, 2),
    )
    first = layer_choices(plan.stages[0])
    assert {index: choice.whole_block for index, choice in first.items()} == {0: True, 1: False, 6: True, 7: True}
    plain = make_plan(Strategy(num_microbatches=4))
    assert set(layer_choices(plain.stages[0]).values()) == {KEEP_ALL}


def test_microbatch_group_is_torchs() -> None:
    assert [interleaved_group_size(4, n) for n in (2, 4, 6, 8, 12)] == [2, 4, 6, 4, 4]


def test_another_world_size_is_one_clear_error() -> None:
    plan = tiny_plan(Strategy(tp=2, num_microbatches=8))
    check_world_size(plan, 2)
    with pytest.raises(DocumentInvalid, match="the plan is for 2 ranks, and 4 were started"):
        check_world_size(plan, 4)


def test_a_plan_that_cannot_run_names_every_rule() -> None:
    with pytest.raises(BackEndRefused, match=r"native\.M1.*native\.E2"):
        refuse_unrunnable(make_plan(Strategy(etp=2, tp=2, sp=True), make_mla_model()))


def test_plan_files(tmp_path: Path) -> None:
    plan = tiny_plan(Strategy(num_microbatches=8))
    path = tmp_path / "plan.json"
    with pytest.raises(NotFound):
        load_plan(path)
    for text in ("", "[1]", '{"strategy": 1}'):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(DocumentInvalid, match="not a plan"):
            load_plan(path)
    path.write_text(plan.canonical_json(), encoding="utf-8")
    assert load_plan(path) == plan


@pytest.mark.parametrize("module", ["train", "operator_sharding.train"])
def test_folders_of_older_releases_find_the_trainer_under_its_old_name(module: str) -> None:
    words = [sys.executable, "-m", f"planner.native.{module}", "--help"]
    done = subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert f"planner.backends.native.trainer.{module}" in done.stdout
