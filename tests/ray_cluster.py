"""Two Ray nodes with eight devices each on this machine, until stdin ends: run by tests that need a Ray cluster."""

from __future__ import annotations

import sys
import tempfile
from importlib import import_module
from typing import Any


def main() -> None:
    """Print the cluster's address, then wait."""
    # By name: where Ray is installed its types are half there, where it is not they are not.
    cluster_utils: Any = import_module("ray.cluster_utils")
    # Not below pytest's folder: Ray puts sockets there, whose paths must be short.
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        node = {"num_cpus": 2, "num_gpus": 8, "object_store_memory": 80 * 2**20}
        cluster = cluster_utils.Cluster(
            initialize_head=True, head_node_args={**node, "include_dashboard": False, "temp_dir": folder}
        )
        cluster.add_node(**node)
        print(cluster.address, flush=True)
        sys.stdin.read()
        cluster.shutdown()


if __name__ == "__main__":
    main()
