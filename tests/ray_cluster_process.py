"""A Ray cluster of several nodes on this machine, in a process of its own: ``tests.ray_clusters`` speaks with it.

Prints one line of JSON when all nodes are there; then each line of stdin is a command (``kill-busy``), answered by a
line; the end of stdin ends every node.  Started by its path: it imports nothing of the repository, so that the workers'
PYTHONPATH alone decides which Meshwright they run.
"""

from __future__ import annotations

import json
import logging
import socket
import sys
import time
from importlib import import_module
from typing import Any

ray: Any = import_module("ray")
state: Any = import_module("ray._private.state")
cluster_utils: Any = import_module("ray.cluster_utils")

STORE_BYTES = 100 * 2**20


def say(**words: Any) -> None:
    print(json.dumps(words), flush=True)


def kill_busy(cluster: Any, nodes: list[Any]) -> str:
    """Kill a node beside the head as soon as a task runs on it; its id."""
    while True:
        free = state.available_resources_per_node()
        for node in nodes:
            if node.node_id in free and free[node.node_id].get("CPU", 0) == 0:
                cluster.remove_node(node, allow_graceful=False)
                nodes.remove(node)
                return str(node.node_id)
        time.sleep(0.02)


def main() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        client_port = free.getsockname()[1]
    cluster = cluster_utils.Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 1,
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
            "ray_client_server_port": client_port,
        },
    )
    nodes = [cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES) for _ in range(int(sys.argv[1]) - 1)]
    cluster.wait_for_nodes()
    ray.init(address=cluster.address, logging_level=logging.ERROR, log_to_driver=False)
    say(address=cluster.address, client=f"ray://127.0.0.1:{client_port}", nodes=[node.node_id for node in nodes])
    for line in sys.stdin:
        if line.strip() == "kill-busy":
            say(killed=kill_busy(cluster, nodes))
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
