"""The operators of the feed-forward part of one layer: dense MLP, or mixture of experts.

The mixture follows Megatron-Core's all-to-all dispatcher: tokens are sorted by destination, exchanged, sorted by
local expert, run through one grouped matmul, and come back the same way.  The router's probabilities are applied
inside the expert activation (Megatron-Core >= 0.12), so that the combine step keeps nothing.
Accounting of kept activations: see ``planner.model.operators``.
"""

from __future__ import annotations

from planner.model.operator import Module, Operator
from planner.model.spec import MlpSpec, MoeSpec


def mlp_operators(mlp: MlpSpec, hidden_size: int, *, input_from: str, input_kept: bool = False) -> tuple[Operator, ...]:
    """List the operators of a dense MLP; ``input_kept`` = another operator keeps the input tensor already."""
    return _dense(
        hidden_size,
        mlp.intermediate_size,
        gated=mlp.gated,
        bias=mlp.bias,
        module="mlp",
        prefix="",
        input_from=input_from,
        input_kept=input_kept,
    )


def _dense(
    hidden_size: int,
    intermediate_size: int,
    *,
    gated: bool,
    bias: bool,
    module: Module,
    prefix: str,
    input_from: str,
    input_kept: bool,
) -> tuple[Operator, ...]:
    up_width = 2 * intermediate_size if gated else intermediate_size
    up, act, down = f"{prefix}up", f"{prefix}activation", f"{prefix}down"
    output_bias = hidden_size if bias else 0
    return (
        Operator(
            name=up,
            op_class="matmul",
            module=module,
            shard="column",
            parameters=hidden_size * up_width + (up_width if bias else 0),
            in_features=hidden_size,
            out_features=up_width,
            read_width=hidden_size,
            write_width=up_width,
            saved_width=0 if input_kept else hidden_size,
            saved_shard=None if input_kept else "sequence",
            saved_from="" if input_kept else input_from,
        ),
        Operator(
            name=act,
            op_class="activation",
            module=module,
            shard="features",
            read_width=up_width,
            write_width=intermediate_size,
            saved_width=up_width,
            saved_shard="features",
            saved_from=up,
        ),
        Operator(
            name=down,
            op_class="matmul",
            module=module,
            shard="row",
            parameters=hidden_size * intermediate_size + output_bias,
            replicated_parameters=output_bias,
            in_features=intermediate_size,
            out_features=hidden_size,
            read_width=intermediate_size,
            write_width=hidden_size,
            saved_width=intermediate_size,
            saved_shard="features",
            saved_from=act,
        ),
    )


def moe_operators(moe: MoeSpec, hidden_size: int, *, input_from: str, input_kept: bool = False) -> tuple[Operator, ...]:
    """List the operators of a mixture of experts: router, dispatch, experts, combine, shared experts."""
    router_width = 0 if input_kept else hidden_size
    choices = moe.num_experts + moe.zero_experts
    scored = moe.router_input_size or hidden_size
    router_parameters = choices * (scored + (1 if moe.router_bias else 0))
    return (
        Operator(
            name="router",
            op_class="router",
            module="moe",
            shard="replicated",
            parameters=router_parameters,
            replicated_parameters=router_parameters,
            in_features=scored,
            out_features=choices,
            read_width=scored,
            write_width=choices,
            num_experts=moe.num_experts,
            saved_width=router_width,
            saved_shard="sequence" if router_width else None,
            saved_from=input_from if router_width else "",
        ),
        Operator(
            name="expert_choice",
            op_class="router",
            module="moe",
            shard="replicated",
            read_width=choices,
            write_width=moe.top_k,
            num_experts=moe.num_experts,
            saved_width=choices,
            saved_shard="sequence",
            saved_bytes_per_element=4.0,
            saved_from="router",
        ),
        *(_latent_projection("latent_down", hidden_size, moe) if moe.latent_size else ()),
        _permute("dispatch", moe, moe.latent_size or hidden_size),
        *_experts(moe, moe.latent_size or hidden_size),
        *_unused(moe, moe.latent_size or hidden_size),
        *_for_images(moe, hidden_size),
        _permute("combine", moe, moe.latent_size or hidden_size),
        *(_latent_projection("latent_up", hidden_size, moe) if moe.latent_size else ()),
        *(_shared_experts(moe, hidden_size, input_from) if moe.shared_intermediate_size else ()),
    )


def _latent_projection(name: str, hidden_size: int, moe: MoeSpec) -> tuple[Operator, ...]:
    """Projection to or from the width of latent experts; every tp rank has all of it, on its own tokens."""
    latent = moe.latent_size or hidden_size
    down = name == "latent_down"
    width = (hidden_size, latent) if down else (latent, hidden_size)
    parameters = width[0] * width[1] + (width[1] if moe.latent_bias else 0)
    operator = Operator(
        name=name,
        op_class="matmul",
        module="moe",
        shard="replicated",
        parameters=parameters,
        replicated_parameters=parameters,
        in_features=width[0],
        out_features=width[1],
        read_width=width[0],
        write_width=width[1],
        saved_width=0 if down else latent,  # the router keeps the input of the first
        saved_shard=None if down else "sequence",
        saved_from="" if down else "combine",
    )
    return (operator,)


def routed_rows(moe: MoeSpec) -> float:
    """Experts with weights that a token meets on average: choices fall on zero experts as often as on others."""
    return moe.top_k * moe.num_experts / (moe.num_experts + moe.zero_experts)


def _permute(name: str, moe: MoeSpec, hidden_size: int) -> Operator:
    """Two copies of the routed tokens: sorted by destination rank, then by local expert (or back)."""
    rows = routed_rows(moe)
    routed = round(rows * hidden_size)
    outward = name == "dispatch"
    return Operator(
        name=name,
        op_class="permute",
        module="moe",
        shard="sequence",
        tokens_per_token=rows,
        read_width=routed + hidden_size if outward else 2 * routed,
        write_width=2 * routed if outward else routed + hidden_size,
        num_experts=moe.num_experts,
        num_groups=moe.num_groups,
        top_k_groups=moe.top_k_groups,
    )


def _experts(moe: MoeSpec, hidden_size: int) -> tuple[Operator, ...]:
    rows, width = routed_rows(moe), moe.expert_intermediate_size
    up_width = 2 * width if moe.gated else width
    bias = 1 if moe.expert_bias else 0
    output_bias = bias * moe.num_experts * hidden_size
    return (
        Operator(
            name="experts_up",
            op_class="grouped_matmul",
            module="moe",
            shard="expert_column",
            parameters=moe.num_experts * up_width * (hidden_size + bias),
            in_features=hidden_size,
            out_features=up_width,
            tokens_per_token=rows,
            read_width=round(rows * hidden_size),
            write_width=round(rows * up_width),
            num_experts=moe.num_experts,
            saved_width=rows * hidden_size,
            saved_shard="expert_column",
            saved_from="dispatch",
        ),
        Operator(
            name="experts_activation",
            op_class="activation",
            module="moe",
            shard="expert_features",
            tokens_per_token=rows,
            read_width=round(rows * up_width),
            write_width=round(rows * width),
            num_experts=moe.num_experts,
            # Weighting by the router's probabilities is fused with gated activations only: else its input stays too.
            saved_width=rows * (up_width if moe.gated else up_width + width),
            saved_shard="expert_features",
            saved_from="experts_up",
        ),
        Operator(
            name="experts_down",
            op_class="grouped_matmul",
            module="moe",
            shard="expert_row",
            parameters=moe.num_experts * hidden_size * width + output_bias,
            replicated_parameters=output_bias,
            in_features=width,
            out_features=hidden_size,
            tokens_per_token=rows,
            read_width=round(rows * width),
            write_width=round(rows * hidden_size),
            num_experts=moe.num_experts,
            num_groups=moe.num_groups,
            top_k_groups=moe.top_k_groups,
            saved_width=rows * width,
            saved_shard="expert_features",
            saved_from="experts_activation",
        ),
    )


def _unused(moe: MoeSpec, hidden_size: int) -> tuple[Operator, ...]:
    """Input projections that no token meets, as the reference class allocates them: memory, no work."""
    if not moe.unused_up_experts:
        return ()
    width = (2 if moe.gated else 1) * moe.expert_intermediate_size
    parameters = moe.unused_up_experts * width * hidden_size
    operator = Operator(
        name="experts_unused",
        op_class="gate",
        module="moe",
        shard="expert_column",
        parameters=parameters,
        num_experts=moe.num_experts,
    )
    return (operator,)


def _for_images(moe: MoeSpec, hidden_size: int) -> tuple[Operator, ...]:
    """Router and experts of tokens of images: memory; all tokens are taken as text, whose experts are not narrower."""
    if moe.image_intermediate_size is None:
        return ()
    router = moe.num_experts * (hidden_size + (1 if moe.router_bias else 0))
    width = (3 if moe.gated else 2) * moe.image_intermediate_size
    experts = moe.num_experts * width * hidden_size
    return (
        Operator(
            name="image_router",
            op_class="gate",
            module="moe",
            shard="replicated",
            parameters=router,
            replicated_parameters=router,
        ),
        Operator(
            name="image_experts",
            op_class="gate",
            module="moe",
            shard="expert_column",
            parameters=experts,
            num_experts=moe.num_experts,
        ),
    )


def _shared_experts(moe: MoeSpec, hidden_size: int, input_from: str) -> tuple[Operator, ...]:
    dense = _dense(
        hidden_size,
        moe.shared_intermediate_size,
        gated=moe.gated,
        bias=moe.shared_bias,
        module="shared_expert",
        prefix="shared_",
        input_from=input_from,
        input_kept=True,  # the router keeps the same tensor
    )
    join = Operator(
        name="shared_sum",
        op_class="residual",
        module="shared_expert",
        shard="sequence",
        read_width=2 * hidden_size,
        write_width=hidden_size,
    )
    if not moe.shared_gate:
        return (*dense, join)
    gate = Operator(
        name="shared_gate",
        op_class="router",
        module="shared_expert",
        shard="replicated",
        parameters=hidden_size,
        replicated_parameters=hidden_size,
        in_features=hidden_size,
        out_features=1,
        # It scales the shared experts' output, which therefore has to be kept.
        read_width=2 * hidden_size,
        write_width=hidden_size,
        saved_width=hidden_size,
        saved_shard="sequence",
        saved_from="shared_down",
    )
    return (*dense, gate, join)
