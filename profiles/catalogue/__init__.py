"""The devices and clusters known by name: data files with a source for every number.

One file a device in ``devices/``, one a cluster in ``clusters/``; the file's name is the catalogue name, so a look-up
parses only the files that it needs.
"""

from __future__ import annotations

from profiles.catalogue.cluster_files import builtin_clusters, is_cluster_path, load_cluster, read_cluster
from profiles.catalogue.device_files import builtin_devices, load_device

__all__ = ["builtin_clusters", "builtin_devices", "is_cluster_path", "load_cluster", "load_device", "read_cluster"]
