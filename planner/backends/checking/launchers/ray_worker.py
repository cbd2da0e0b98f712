"""Asks Ray about the driver's requests: placement group, actor options, or the TorchTrainer; no cluster is started."""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from planner.backends.checking.answers import Refused, serve


def load(name: str, text: str, folder: str) -> types.ModuleType:
    """The script as a module, its ``main`` not run."""
    module = types.ModuleType(name)
    module.__file__ = str(Path(folder, f"{name}.py"))
    sys.modules[name] = module  # Ray pickles by module name
    exec(compile(text, module.__file__, "exec"), module.__dict__)  # the folder is known to be unedited
    return module


def placement(driver: types.ModuleType, job: dict[str, Any]) -> dict[str, Any]:
    """The bundles and the actor options, by Ray's own validation."""
    import ray
    from ray._raylet import PlacementGroupID
    from ray.util.placement_group import PlacementGroup, validate_placement_group

    nodes = [
        {"Alive": True, "NodeManagerHostname": host, "NodeManagerAddress": f"10.0.{index // 256}.{index % 256}"}
        for index, host in enumerate(job["hosts"])
    ]
    bundles = driver.bundles(job, nodes)
    validate_placement_group(bundles=bundles, strategy=driver.strategy_of(job))
    group = PlacementGroup(PlacementGroupID.nil(), bundle_cache=bundles)
    actor = ray.remote(driver.Node)
    for index in range(len(bundles)):
        wanted = driver.options(job, group, index)
        actor.options(**wanted)
        devices = wanted.get("num_gpus") or sum(wanted.get("resources", {}).values())
        if devices > bundles[index][job["resource"]] or wanted["num_cpus"] > bundles[index]["CPU"]:
            raise ValueError(f"the actor of node {index} asks for more than its bundle has")
    return {"bundles": len(bundles), "devices": sum(bundle[job["resource"]] for bundle in bundles)}


def training(script: types.ModuleType, job: dict[str, Any]) -> dict[str, Any]:
    """The TorchTrainer, constructed."""
    trainer = script.trainer(job, {})
    scaling = trainer.scaling_config
    return {"workers": scaling.num_workers, "devices": int(scaling.num_workers * scaling.num_gpus_per_worker)}


def entrypoint(manifest: str, driver: str) -> str:
    """What is wrong with the RayJob's entrypoint; empty where the head can run it."""
    import yaml

    spec = yaml.safe_load(manifest)["spec"]
    pod = spec["rayClusterSpec"]["headGroupSpec"]["template"]["spec"]
    path = spec["entrypoint"].split()[-1]
    mounts = {mount["mountPath"]: mount["name"] for mount in pod["containers"][0].get("volumeMounts") or ()}
    folder, _, name = path.rpartition("/")
    volume = next((each for each in pod.get("volumes") or () if each["name"] == mounts.get(folder)), None)
    if name != driver or volume is None:
        return f"the head pod has no {path}"
    items = (volume.get("configMap") or {}).get("items")
    if items is not None and name not in [item["path"] for item in items]:
        return f"the ConfigMap of the head pod has no {name}"
    return ""


def stages(request: dict[str, Any], facts: dict[str, Any]) -> Iterator[str]:
    """The driver, what it asks of Ray, and the RayJob that starts it."""
    yield "driver"
    job = json.loads(request["job"])
    module = load(request["name"].removesuffix(".py"), request["script"], request["folder"])
    yield "resources"
    facts |= training(module, job) if hasattr(module, "trainer") else placement(module, job)
    if facts["devices"] != request["world_size"]:
        raise ValueError(f"{facts['devices']} devices for {request['world_size']} ranks")
    yield "entrypoint"
    wrong = entrypoint(request["manifest"], request["name"]) if request["manifest"] else ""
    if wrong:
        raise Refused(wrong)


if __name__ == "__main__":
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_TRAIN_V2_ENABLED", "1")
    serve(stages)
