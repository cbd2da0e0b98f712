"""Which NPU is which rank: an HCCL rank table in the plan's order, addresses left to fill in.

Version 1.0 for servers on a RoCE network (Atlas A2), 1.2 with ``super_pod_list`` where servers share an HCCS domain
(Atlas A3).  Ranks run over the NPUs of a server, then over the servers, as torchrun numbers them.  ``status`` is
``template``: HCCL takes a table only once somebody filled it and wrote ``completed``.
Source: hicann/hccl docs, cluster_info_config; Ascend/mind-cluster hccl.json description.
"""

from __future__ import annotations

import json
from typing import Any


def rank_table(num_nodes: int, devices_per_node: int, nodes_per_super_pod: int | None = None) -> str:
    """The table's text, one NPU a line."""
    super_pods = nodes_per_super_pod is not None
    servers = [_server(node, devices_per_node, super_pods=super_pods) for node in range(num_nodes)]
    lines = [
        "{",
        ' "status": "template",',
        f' "version": "{"1.2" if super_pods else "1.0"}",',
        f' "server_count": "{num_nodes}",',
        ' "server_list": [',
        ",\n".join(servers),
        " ]" + ("," if super_pods else ""),
    ]
    if nodes_per_super_pod is not None:
        lines += [' "super_pod_list": [', ",\n".join(_super_pods(num_nodes, nodes_per_super_pod)), " ]"]
    return "\n".join([*lines, "}", ""])


def _server(node: int, devices_per_node: int, *, super_pods: bool) -> str:
    head = {"server_id": f"node_{node}", "host_ip": f"HOST_IP_OF_NODE_{node}"}
    devices = (_device(node, index, node * devices_per_node + index, super_pods) for index in range(devices_per_node))
    body = ",\n".join(f"    {json.dumps(device)}" for device in devices)
    return f'  {json.dumps(head)[:-1]}, "device": [\n{body}\n  ]}}'


def _device(node: int, index: int, rank: int, super_pods: bool) -> dict[str, Any]:
    """Ids are text in these versions."""
    found = {"device_id": str(index)}
    if super_pods:
        found["super_device_id"] = f"SDID_OF_NODE_{node}_NPU_{index}"
    return {**found, "device_ip": f"IP_OF_NODE_{node}_NPU_{index}", "rank_id": str(rank)}


def _super_pods(num_nodes: int, nodes_each: int) -> list[str]:
    pods = []
    for pod, first in enumerate(range(0, num_nodes, nodes_each)):
        servers = [{"server_id": f"node_{node}"} for node in range(first, min(first + nodes_each, num_nodes))]
        pods.append(f"  {json.dumps({'super_pod_id': str(pod), 'server_list': servers})}")
    return pods
