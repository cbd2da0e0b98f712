"""Clusters by catalogue name (``dgx-h100``) or from a file (``my-cluster.yaml``), with N devices."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from profiles.catalogue.device_files import load_device
from profiles.catalogue.kept_yaml import load_catalogue_file
from profiles.cluster import Cluster
from profiles.consistency import check_cluster
from profiles.errors import DocumentInvalid, NotFound
from profiles.safe_yaml import load_document_file
from profiles.scaling import scale_cluster
from profiles.spelling import nearest_name
from profiles.validation import read_document, require

CLUSTER_FOLDER = Path(__file__).parent / "clusters"
_SUFFIXES = frozenset({".yaml", ".yml", ".json"})


def builtin_clusters() -> tuple[str, ...]:
    """Names of all catalogue clusters, sorted."""
    return tuple(sorted(path.stem for path in CLUSTER_FOLDER.glob("*.yaml")))


def is_cluster_path(reference: str) -> bool:
    """Whether a file is meant, and not a name of the catalogue: a slash or a known suffix."""
    return Path(reference).suffix.lower() in _SUFFIXES or "/" in reference


def load_cluster(reference: str, num_devices: int | None = None) -> Cluster:
    """The cluster of a catalogue name (any case) or a YAML / JSON path, scaled to ``num_devices`` if given.

    Raises NotFound (unknown name, no such file) and DocumentInvalid (malformed, inconsistent, impossible number of
    devices).  An existing file wins over a catalogue name only if the reference looks like a path.
    """
    if is_cluster_path(reference):
        cluster = read_cluster(load_document_file(Path(reference)), str(Path(reference)))
    else:
        cluster = _catalogue_cluster(_catalogue_name(reference))
    return cluster if num_devices is None else scale_cluster(cluster, num_devices)


@cache
def _catalogue_cluster(name: str) -> Cluster:
    """Read once: a command asks for its cluster several times."""
    path = CLUSTER_FOLDER / f"{name}.yaml"
    return read_cluster(load_catalogue_file(path), str(path))


def read_cluster(data: Any, where: str) -> Cluster:
    """A cluster from plain data: devices may be catalogue names, numbers may carry units ("400 Gbit/s").

    ``num_devices``, which `meshwright clusters show` prints, follows from the pools and may only repeat what they say.
    Raises DocumentInvalid with every finding, NotFound for an unknown device.
    """
    said = data.get("num_devices") if isinstance(data, dict) else None
    if said is not None:
        data = {key: value for key, value in data.items() if key != "num_devices"}
    cluster = read_document(Cluster, _with_devices(data, where), where, human_units=True)
    require(check_cluster(cluster), where)
    if said is not None and said != cluster.num_devices:
        raise DocumentInvalid(
            f"num_devices is {said}, but the pools hold {cluster.num_devices:,} devices",
            where=f"{where}#/num_devices",
            hint="drop num_devices, or correct num_nodes of the pools",
        )
    return cluster


def _catalogue_name(reference: str) -> str:
    known = builtin_clusters()
    plain = reference.casefold()
    if plain in known:
        return plain
    match = nearest_name(reference, known)
    hint = f"did you mean '{match}'?" if match else f"known clusters: {', '.join(known)}; or give a YAML path"
    if Path(reference).exists():
        hint = f"a file of that name exists: write ./{reference}"
    raise NotFound(f"there is no cluster '{reference}' in the catalogue", where="--cluster", hint=hint)


def _with_devices(data: Any, where: str) -> Any:
    """Copy of the data with device names replaced by the devices."""
    if not isinstance(data, dict) or not isinstance(data.get("pools"), list):
        return data
    pools = []
    for index, pool in enumerate(data["pools"]):
        if isinstance(pool, dict) and isinstance(pool.get("device"), str):
            device = load_device(pool["device"], f"{where}#/pools/{index}/device")
            pools.append({**pool, "device": device.model_dump()})
        else:
            pools.append(pool)
    return {**data, "pools": pools}
