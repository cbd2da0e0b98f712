"""Checks that several engines make, or forget to make, in the same words; each room gives them its own rule ids."""

from __future__ import annotations

from planner.serving.engines.engine import DRAFTED, Asked
from planner.serving.words import WeightFormat

BLOCK = 128
"""Rows and columns of a scale of ``fp8_block``."""
_SINCE: dict[str, int] = {"volta": 0, "turing": 1, "ampere": 2, "ada": 3, "hopper": 4, "blackwell": 5, "rubin": 6}
"""NVIDIA's architectures in the order of what their matrix units can."""
MULTIPLIED_SINCE: dict[WeightFormat, str] = {"fp8": "ada", "fp8_block": "ada", "nvfp4": "blackwell"}
"""The first architecture whose matrix units multiply the format; on older ones Marlin kernels read the weights in the
format and multiply in 16 bit."""
WEIGHTS_ONLY_SINCE: dict[WeightFormat, str] = {
    "fp8": "ampere",
    "fp8_block": "ampere",
    "nvfp4": "ampere",
    "mxfp4": "ampere",
    "int8": "ampere",
    "int4": "ampere",
}


def at_least(architecture: str, first: str) -> bool:
    """Whether an NVIDIA architecture is this one or a later one; one that is not in the list never is."""
    return _SINCE.get(architecture, -1) >= _SINCE[first]


def weights_only(architecture: str, number_format: WeightFormat) -> bool:
    """Whether an NVIDIA device only stores the format and multiplies in 16 bit."""
    if number_format == "bf16":
        return False
    first = MULTIPLIED_SINCE.get(number_format)
    return first is None or not at_least(architecture, first)


def heads_over_tp(asked: Asked) -> str | None:
    """Query heads are split over tp evenly; key-value heads evenly, or each is held by as many devices."""
    tp = asked.group.layout.tp
    for heads in asked.facts.num_heads:
        if heads % tp:
            return f"tp = {tp} does not divide the {heads} query heads; use a tp that does"
    for heads in asked.facts.num_kv_heads:
        if heads % tp and tp % heads:
            return f"tp = {tp} neither divides the {heads} key-value heads nor is a multiple of them; change tp"
    return None


def stages_within_layers(asked: Asked) -> str | None:
    """A pipeline stage has a layer."""
    pp, layers = asked.group.layout.pp, asked.facts.num_layers
    return f"pp = {pp} is above the {layers} layers: use pp <= {layers}" if pp > layers else None


def experts_of_a_mixture(asked: Asked) -> str | None:
    """Expert parallelism, redundant experts and an exchange of experts need experts."""
    if asked.facts.num_experts:
        return None
    if asked.group.layout.ep > 1:
        return f"{asked.facts.name} has no experts: use ep = 1"
    if asked.group.settings.redundant_experts:
        return f"{asked.facts.name} has no experts: use redundant_experts = 0"
    if asked.group.settings.expert_exchange:
        return f"{asked.facts.name} has no experts: leave expert_exchange out"
    return None


def experts_over_ep(asked: Asked) -> str | None:
    """Every device of ep has equally many experts, redundant ones among them."""
    ep, redundant, experts = asked.group.layout.ep, asked.group.settings.redundant_experts, asked.facts.num_experts
    if not experts:
        return None
    if ep > experts + redundant:
        return f"ep = {ep} is above the {experts + redundant} experts: use a smaller ep"
    if (experts + redundant) % ep:
        more = -(-(experts + redundant) // ep) * ep - experts
        what = f"{experts} experts" + (f" and {redundant} redundant ones" if redundant else "")
        return f"ep = {ep} does not divide {what}: use a divisor, or redundant_experts = {more}"
    return None


def widths_over_devices(asked: Asked, mlp: int, shared: int) -> str | None:
    """Inner widths of MLPs are split over ``mlp`` devices, of shared experts over ``shared``, of experts over etp."""
    layout = asked.group.layout
    for what, widths, devices in (
        ("MLP", asked.facts.mlp_sizes, mlp),
        ("shared experts", asked.facts.shared_sizes, shared),
    ):
        for width in widths:
            if width % devices:
                return f"{devices} devices do not divide the width {width} of the {what}; use a tp that does"
    for width in asked.facts.expert_sizes:
        if width % layout.etp:
            return f"tp x attention_dp x cp / ep = {layout.etp} does not divide the experts' width {width}; use more ep"
    return None


def whole_blocks(asked: Asked, mlp: int, shared: int) -> str | None:
    """A device's part of a weight with block scales is whole blocks of 128 (vllm-project/vllm#40955).

    ``mlp`` and ``shared``: as in ``widths_over_devices``.
    """
    layout, formats = asked.group.layout, asked.formats
    if formats.weights == "fp8_block":
        for widths, devices in ((asked.facts.mlp_sizes, mlp), (asked.facts.shared_sizes, shared)):
            for width in widths:
                if devices > 1 and width % (devices * BLOCK):
                    part = f"{width} / {devices} = {width / devices:g}"
                    return f"an MLP's part {part} is not whole blocks of {BLOCK}: use a smaller tp, or weights = fp8"
    if formats.of_experts == "fp8_block" and layout.etp > 1:
        for width in asked.facts.expert_sizes:
            if width % (layout.etp * BLOCK):
                part = f"{width} / {layout.etp} = {width / layout.etp:g}"
                return f"an expert's part {part} is not whole blocks of {BLOCK}: use more ep, so that etp is smaller"
    return None


def limits_over_ranks(asked: Asked) -> str | None:
    """The instance's limits are given to each rank of attention_dp, so they must divide."""
    settings, ranks = asked.group.settings, asked.group.layout.attention_dp
    for name in ("max_num_sequences", "max_num_batched_tokens"):
        limit = getattr(settings, name)
        if limit is not None and limit % ranks:
            return f"{name} = {limit} is not a multiple of attention_dp = {ranks}: use {-(-limit // ranks) * ranks}"
    return None


def tokens_for_sequences(asked: Asked) -> str | None:
    """An iteration has room for a token of every running request."""
    settings = asked.group.settings
    tokens, sequences = settings.max_num_batched_tokens, settings.max_num_sequences
    if tokens is not None and sequences is not None and tokens < sequences:
        return f"max_num_batched_tokens = {tokens} is below max_num_sequences = {sequences}: raise it"
    return None


def whole_prompts(asked: Asked) -> str | None:
    """Without chunks the longest prompt runs in one iteration."""
    settings, served = asked.group.settings, asked.served
    if settings.chunked_prefill or settings.max_num_batched_tokens is None or served is None:
        return None
    tokens = settings.max_num_batched_tokens // asked.group.layout.attention_dp
    longest = served.longest_tokens or asked.facts.longest_tokens
    if tokens < longest:
        return (
            f"without chunked_prefill an iteration needs the {longest} tokens of the longest request on a rank, "
            f"max_num_batched_tokens gives {tokens}: raise it, or use chunked_prefill"
        )
    return None


def formats_on_device(asked: Asked) -> str | None:
    """The device can at least store and unpack the format."""
    device = asked.device
    for number_format in {asked.formats.weights, asked.formats.of_experts} - {"bf16"}:
        if device.vendor == "NVIDIA" and not at_least(device.architecture, WEIGHTS_ONLY_SINCE[number_format]):
            first = WEIGHTS_ONLY_SINCE[number_format]
            return f"{device.name} ({device.architecture}) has no kernels for {number_format}: needs {first} or later"
        if device.vendor == "AMD" and number_format in ("nvfp4", "int8"):
            return f"{device.name} has no kernels for {number_format}: use bf16, fp8, mxfp4 or int4"
    return None


def formats_of_checkpoint(
    asked: Asked, online: frozenset[WeightFormat], online_experts: frozenset[WeightFormat] | None = None
) -> str | None:
    """What the checkpoint does not hold, the engine must make on loading, from 16-bit weights.

    ``online_experts``: what it makes of experts; none = the same as of dense weights.
    """
    served, formats = asked.served, asked.formats
    if served is None or (formats.weights, formats.of_experts) == (served.weights, served.of_experts):
        return None
    of_experts = online if online_experts is None else online_experts
    parts = [(formats.weights, served.weights, online), (formats.of_experts, served.of_experts, of_experts)]
    for wanted, held, makes in parts:
        if held not in (wanted, "bf16"):
            return f"the checkpoint is {held} and cannot be read as {wanted}: name a checkpoint in {wanted}"
        if wanted != held and wanted not in makes:
            made = ", ".join(sorted(makes)) or "none"
            return f"a {held} checkpoint cannot be made {wanted} on loading (those that can: {made}): name another"
    return None


def drafts_of_model(asked: Asked) -> str | None:
    """Multi-token prediction needs the model's own modules; a draft model needs a name."""
    speculation = asked.group.settings.speculation
    if speculation is None:
        return None
    if speculation.method == "mtp" and not asked.facts.num_mtp_layers:
        return f"{asked.facts.name} has no multi-token prediction modules: use another method, or none"
    if asked.served is not None and speculation.method in DRAFTED and asked.served.draft_model is None:
        return f"speculation {speculation.method} needs the draft model's name: give draft_model"
    return None


def whole_nodes(asked: Asked) -> str | None:
    """An instance over several nodes takes them whole."""
    devices, node = asked.group.layout.num_devices, asked.devices_per_node
    if node and devices > node and devices % node:
        return f"an instance of {devices} devices neither fits into a node of {node} nor fills whole nodes"
    return None
