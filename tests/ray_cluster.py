"""Two Ray nodes with eight devices each on this machine, until stdin ends: run by tests that need a Ray cluster."""

from __future__ import annotations

import sys
import tempfile


def main() -> None:
    """Print the cluster's address, then wait."""
    from ray.cluster_utils import Cluster

    # Not below pytest's folder: Ray puts sockets there, whose paths must be short.
    with tempfile.TemporaryDirectory(prefix="ray-", dir="/tmp", ignore_cleanup_errors=True) as folder:
        node = {"num_cpus": 2, "num_gpus": 8, "object_store_memory": 80 * 2**20}
        cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False, "temp_dir": folder})
        cluster.add_node(**node)
        print(cluster.address, flush=True)
        sys.stdin.read()
        cluster.shutdown()


if __name__ == "__main__":
    main()
