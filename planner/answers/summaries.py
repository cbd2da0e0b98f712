"""The main facts of a model, a cluster or an accelerator: one line of data each."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from planner.model.spec import ModelSpec
    from profiles.cluster import Cluster
    from profiles.device import Device


def model_summary(name: str, spec: ModelSpec) -> dict[str, Any]:
    """What a person asks first about a model."""
    from planner.model.parameters import active_parameters, total_parameters

    return {
        "name": name,
        "family": spec.family,
        "parameters": total_parameters(spec),
        "active_parameters": active_parameters(spec),
        "num_layers": spec.num_layers,
        "encoder_layers": spec.encoder.num_layers if spec.encoder else 0,
        "hidden_size": spec.hidden_size,
        "vocab_size": spec.vocab_size,
        "max_sequence_length": spec.position_limit,
        "num_experts": max((kind.moe.num_experts for kind in spec.layer_kinds if kind.moe), default=0),
    }


def cluster_summary(cluster: Cluster) -> dict[str, Any]:
    """What a person asks first about a cluster."""
    pool = cluster.pools[0]
    return {
        "name": cluster.name,
        "num_devices": cluster.num_devices,
        "device": pool.device.name,
        "devices_per_node": pool.devices_per_node,
        "memory_bytes": pool.device.memory_bytes,
        "scale_up": pool.scale_up.name or pool.scale_up.kind,
        "scale_up_domain_size": pool.scale_up.domain_size,
        "scale_up_bandwidth_bytes_per_s": pool.scale_up.bandwidth_bytes_per_s,
        "nics_per_node": pool.nics_per_node,
        "nic_bandwidth_bytes_per_s": pool.nic_bandwidth_bytes_per_s,
    }


def device_summary(device: Device) -> dict[str, Any]:
    """What a person asks first about an accelerator."""
    return {
        "name": device.name,
        "vendor": device.vendor,
        "architecture": device.architecture,
        "memory_bytes": device.memory_bytes,
        "memory_bandwidth_bytes_per_s": device.memory_bandwidth_bytes_per_s,
        "peak_flops_per_s": dict(device.peak_flops_per_s),
    }
