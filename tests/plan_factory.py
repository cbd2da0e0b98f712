"""Build consistent ``Plan`` documents by hand, for tests of emitters and of everything that reads plans.

The predicted numbers are simple closed forms (they follow from layer counts), not the planner's cost model: a test
that needs real numbers asks the planner.
"""

from __future__ import annotations

from collections.abc import Sequence

from planner.model.spec import AttentionSpec, LayerRun, LayerSpec, MlpSpec, ModelSpec, MoeSpec, MtpSpec
from planner.plan.plan import ChunkPlan, MemoryBill, Plan, SearchReport, StageOffload, StagePlan, StageRecompute
from planner.question.problem import Problem, Workload
from planner.strategy.strategy import Strategy
from profiles.cluster import Cluster, Host, Pool, ScaleUp
from profiles.device import Device

LAYER_FORWARD_S = 0.001
LAYER_BYTES = 64 * 2**20


def make_model(
    num_layers: int = 8, *, num_heads: int = 16, num_kv_heads: int = 8, tie_embeddings: bool = False
) -> ModelSpec:
    """A small llama: 16 heads of 64, gated MLP, RMS norm."""
    attention = AttentionSpec(num_heads=num_heads, num_kv_heads=num_kv_heads, head_dim=64, v_head_dim=64)
    layer = LayerSpec(attention=attention, mlp=MlpSpec(intermediate_size=4096, gated=True))
    return ModelSpec(
        name="small-llama",
        family="llama",
        hidden_size=1024,
        vocab_size=32000,
        layer_kinds=(layer,),
        layer_runs=(LayerRun(kind=0, count=num_layers),),
        tie_embeddings=tie_embeddings,
        max_sequence_length=8192,
    )


def make_gpt(hidden_size: int, num_heads: int, sequence_length: int) -> ModelSpec:
    """One GPT layer: multi-head attention, an MLP four times as wide, learned positions."""
    width = hidden_size // num_heads
    attention = AttentionSpec(num_heads=num_heads, num_kv_heads=num_heads, head_dim=width, v_head_dim=width)
    layer = LayerSpec(attention=attention, mlp=MlpSpec(intermediate_size=4 * hidden_size, gated=False), norm="layer")
    return ModelSpec(
        name="gpt",
        family="gpt2",
        hidden_size=hidden_size,
        vocab_size=51_200,
        layer_kinds=(layer,),
        layer_runs=(LayerRun(kind=0, count=1),),
        learned_positions=sequence_length,
        max_sequence_length=sequence_length,
        activation_function="gelu",
        position="learned",
    )


def make_moe_model(num_layers: int = 8, *, num_dense: int = 0, num_mtp_layers: int = 0, shared: int = 0) -> ModelSpec:
    """A small mixture of experts: 16 experts, top 2, the first ``num_dense`` layers dense."""
    attention = AttentionSpec(num_heads=16, num_kv_heads=8, head_dim=64, v_head_dim=64)
    moe = MoeSpec(num_experts=16, top_k=2, expert_intermediate_size=512, shared_intermediate_size=shared)
    kinds = (
        LayerSpec(attention=attention, moe=moe),
        LayerSpec(attention=attention, mlp=MlpSpec(intermediate_size=4096, gated=True)),
    )
    runs = [LayerRun(kind=1, count=num_dense)] if num_dense else []
    return ModelSpec(
        name="small-moe",
        family="mixtral",
        hidden_size=1024,
        vocab_size=32000,
        layer_kinds=kinds if num_dense else kinds[:1],
        layer_runs=(*runs, LayerRun(kind=0, count=num_layers - num_dense)),
        max_sequence_length=8192,
        mtp=MtpSpec(num_layers=num_mtp_layers, kind=0) if num_mtp_layers else None,
    )


def make_mla_model(num_layers: int = 8, *, num_dense: int = 1, num_mtp_layers: int = 0) -> ModelSpec:
    """A small DeepSeek: latent attention, experts with a shared one, sigmoid router with a bias."""
    attention = AttentionSpec(
        kind="mla",
        num_heads=16,
        num_kv_heads=16,
        head_dim=96,
        v_head_dim=64,
        q_lora_rank=256,
        kv_lora_rank=128,
        qk_rope_head_dim=32,
    )
    moe = MoeSpec(
        num_experts=16,
        top_k=4,
        expert_intermediate_size=256,
        router_bias=True,
        score_function="sigmoid",
        num_groups=4,
        top_k_groups=2,
        shared_intermediate_size=256,
    )
    dense = LayerSpec(attention=attention, mlp=MlpSpec(intermediate_size=2048, gated=True))
    runs = [LayerRun(kind=1, count=num_dense)] if num_dense else []
    return ModelSpec(
        name="small-deepseek",
        family="deepseek_v3",
        hidden_size=1024,
        vocab_size=32000,
        layer_kinds=(LayerSpec(attention=attention, moe=moe), dense),
        layer_runs=(*runs, LayerRun(kind=0, count=num_layers - num_dense)),
        max_sequence_length=8192,
        mtp=MtpSpec(num_layers=num_mtp_layers, kind=0) if num_mtp_layers else None,
    )


def make_cluster(num_devices: int = 8, *, devices_per_node: int = 8, architecture: str = "hopper") -> Cluster:
    """Nodes of ``devices_per_node`` devices behind a switch; smaller than one node = one small node."""
    per_node = min(devices_per_node, num_devices)
    device = Device(
        name="test-device",
        vendor="NVIDIA",
        architecture=architecture,
        memory_bytes=80 * 2**30,
        memory_bandwidth_bytes_per_s=3.35e12,
        peak_flops_per_s={"bf16": 989e12, "fp8": 1979e12},
    )
    pool = Pool(
        device=device,
        num_nodes=-(-num_devices // per_node),
        devices_per_node=per_node,
        scale_up=ScaleUp(kind="switch", domain_size=per_node, bandwidth_bytes_per_s=450e9, latency_s=2e-6),
        nics_per_node=per_node,
        nic_bandwidth_bytes_per_s=50e9,
        host=Host(memory_bytes=2 * 2**40, link_bandwidth_bytes_per_s=64e9),
    )
    return Cluster(name=f"test-{num_devices}", pools=(pool,))


def even_layers(num_layers: int, num_chunks: int) -> tuple[int, ...]:
    """Layers a chunk, as even as can be, the remainder on the first chunks."""
    base, extra = divmod(num_layers, num_chunks)
    return tuple(base + (chunk < extra) for chunk in range(num_chunks))


def make_plan(
    strategy: Strategy | None = None,
    model: ModelSpec | None = None,
    cluster: Cluster | None = None,
    workload: Workload | None = None,
    layers_per_chunk: Sequence[int] | None = None,
    recompute_layers_per_chunk: Sequence[int] | None = None,
    activation_offload_layers: Sequence[int] | None = None,
    *,
    backend: str = "unrestricted",
    release: str = "",
) -> Plan:
    """A plan whose parts agree with each other; ``backend`` and ``release`` say whose it is.

    ``layers_per_chunk`` and ``recompute_layers_per_chunk`` go along the model, one entry for each of the pp * vpp
    chunks; the latter only matters with a recompute policy and defaults to every layer.
    ``activation_offload_layers`` is for each pipeline rank and defaults to all of its layers when the strategy
    offloads activations.
    """
    strategy = strategy or Strategy()
    model = model or make_model()
    cluster = cluster or make_cluster(strategy.world_size)
    workload = workload or Workload(global_batch_size=strategy.global_batch_size, sequence_length=4096)
    layers = tuple(layers_per_chunk or even_layers(model.num_layers, strategy.num_chunks))
    if len(layers) != strategy.num_chunks or sum(layers) != model.num_layers:
        raise ValueError(f"{layers} is not a split of {model.num_layers} layers into {strategy.num_chunks} chunks")
    recomputed = tuple(recompute_layers_per_chunk if recompute_layers_per_chunk is not None else layers)
    stages = tuple(
        _stage(strategy, model, stage, layers, recomputed, activation_offload_layers) for stage in range(strategy.pp)
    )
    slowest_s = max(stage.forward_s + stage.backward_s for stage in stages)
    step_time_s = (strategy.num_microbatches + strategy.pp - 1) * slowest_s
    bubble_s = (strategy.pp - 1) * slowest_s
    tokens = workload.global_batch_size * workload.sequence_length
    return Plan(
        problem=Problem(model=model, cluster=cluster, workload=workload),
        backend=backend,
        release=release,
        status="optimal",
        strategy=strategy.to_dict(),
        stages=stages,
        step_time_s=step_time_s,
        step_time_interval_s=(0.9 * step_time_s, 1.1 * step_time_s),
        tokens_per_s=tokens / step_time_s,
        tokens_per_s_per_device=tokens / step_time_s / strategy.world_size,
        model_flops_per_step=6e8 * tokens,
        model_flops_utilization=6e8 * tokens / step_time_s / strategy.world_size / 989e12,
        peak_memory_bytes=max(stage.peak_memory_bytes.total for stage in stages),
        memory_limit_bytes=cluster.pools[0].device.memory_bytes,
        breakdown_s={"compute": step_time_s - bubble_s, "pp_bubble": bubble_s},
        lower_bound_s=step_time_s,
        gap=0.0,
        search=SearchReport(enumerated=1, pruned={}, bounded=1, evaluated=1, proof="Made by hand for a test."),
        assumptions=("Made by hand for a test.",),
    )


def _stage(
    strategy: Strategy,
    model: ModelSpec,
    stage: int,
    layers: tuple[int, ...],
    recomputed: tuple[int, ...],
    offloaded: Sequence[int] | None,
) -> StagePlan:
    mine = [chunk for chunk in range(strategy.num_chunks) if strategy.chunk_stage(chunk) == stage]
    last = strategy.num_chunks - 1
    chunks = tuple(
        ChunkPlan(
            chunk=chunk,
            first_layer=sum(layers[:chunk]),
            num_layers=layers[chunk],
            has_embedding=chunk == 0,
            has_head=chunk == last,
            num_mtp_layers=model.mtp.num_layers if model.mtp and chunk == last else 0,
        )
        for chunk in mine
    )
    count = sum(chunk.num_layers for chunk in chunks)
    policy = strategy.recompute
    activation_layers = (offloaded[stage] if offloaded is not None else count) if strategy.activation_offload else 0
    weights = (count + 1) * LAYER_BYTES // (strategy.tp * (strategy.dp_shard if strategy.zero_stage == 3 else 1))
    bill = {
        "weights": weights,
        "gradients": 2 * weights,
        "optimizer": 6 * weights // (strategy.dp_shard if strategy.zero_stage else 1),
        "activations": (count - activation_layers) * LAYER_BYTES * min(strategy.pp - stage, strategy.num_microbatches),
        "buffers": 2**30,
    }
    forward_s = (count + 0.5) * LAYER_FORWARD_S
    return StagePlan(
        stage=stage,
        layers=count,
        chunks=chunks,
        recompute=StageRecompute(
            policy=policy,
            modules=strategy.recompute_modules if policy == "selective" else (),
            num_layers_per_chunk=() if policy == "none" else tuple(min(recomputed[c], layers[c]) for c in mine),
        ),
        offload=StageOffload(optimizer=strategy.optimizer_offload, activation_layers=activation_layers),
        peak_memory_bytes=MemoryBill(**bill, total=sum(bill.values())),
        parameters_per_device=weights // 2,
        forward_s=forward_s,
        backward_s=2 * forward_s,
        weight_gradient_s=forward_s,
    )
