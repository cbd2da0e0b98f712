"""What a launcher must know: nodes, devices a node, the script of each rank, its environment, the place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from planner.backends.launch.node_groups import NodeGroup, node_groups
from planner.backends.launch.settings import LaunchSettings
from planner.errors import BackEndRefused, DocumentInvalid
from planner.plan.plan import Plan
from profiles.cluster import Cluster
from profiles.device import Vendor

HOSTS_FILE = "hosts.txt"
_NAME = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, slots=True)
class LaunchSpec:
    """One job, the same for every launcher.

    ``script`` is a path beside the launcher files and runs once for each rank, in its own directory, with RANK,
    LOCAL_RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT set.  A ``.py`` script is run by Python, anything else must be
    executable.  ``arguments`` are literal words.

    With ``process_drives_node`` (JAX) it runs once for each node instead and drives all devices there: RANK is the
    node's, LOCAL_RANK 0 and WORLD_SIZE the number of nodes.
    """

    job_name: str
    num_nodes: int
    devices_per_node: int
    script: str
    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    process_drives_node: bool = False
    vendor: Vendor = "NVIDIA"
    rdma: bool = False
    """Whether ranks talk over NICs that pin memory."""
    order_matters: str = ""
    """Why the order of the nodes counts; empty where the fabric is flat."""
    files: Mapping[str, str] = field(default_factory=dict)
    """What the ranks need beside the launcher's own files: relative path -> text."""
    settings: LaunchSettings = field(default_factory=LaunchSettings)
    architecture: str = ""
    """Of the devices, for launchers that ask for them by kind; empty = not told."""
    scale_up_domain: int = 0
    """Devices that reach each other without the network; 0 = not told."""
    plan_id: str = ""
    """The whole id of the plan, for launchers whose jobs have room for it; the name has its beginning."""
    groups: tuple[NodeGroup, ...] = ()
    """Kinds of nodes in the order of node ranks, where there are several; ``devices_per_node`` is then the most."""

    @property
    def world_size(self) -> int:
        """Devices in all; ranks too, where every device has a process."""
        return sum(each.num_nodes * each.devices_per_node for each in self.groups) or (
            self.num_nodes * self.devices_per_node
        )

    def of_group(self, group: NodeGroup) -> LaunchSpec:
        """The part of the job on one kind of nodes, with the hosts of that part."""
        hosts = self.hosts[group.first_node : group.first_node + group.num_nodes]
        return replace(
            self,
            num_nodes=group.num_nodes,
            devices_per_node=group.devices_per_node,
            settings=replace(self.settings, hosts=hosts),
            groups=(),
        )

    @property
    def processes_per_node(self) -> int:
        """How often the script runs on one node."""
        return 1 if self.process_drives_node else self.devices_per_node

    @property
    def hosts(self) -> tuple[str, ...]:
        """The host of each node rank; empty where the user named none."""
        return self.settings.hosts[: self.num_nodes]

    def hosts_text(self) -> dict[str, str]:
        """``hosts.txt``, the host of node rank 0 first; nothing where the user named none."""
        return {HOSTS_FILE: "".join(f"{host}\n" for host in self.hosts)} if self.hosts else {}


@dataclass(frozen=True, slots=True)
class LaunchFiles:
    """What a launcher adds to an emission."""

    files: Mapping[str, str]
    command: str
    executables: frozenset[str]
    notes: tuple[str, ...] = ()
    """What a person must know or set before starting it."""


def launch_spec(
    plan: Plan,
    script: str,
    environment: Mapping[str, str],
    arguments: tuple[str, ...] = (),
    *,
    process_drives_node: bool = False,
    files: Mapping[str, str] | None = None,
    settings: LaunchSettings = LaunchSettings(),  # noqa: B008  # frozen
) -> LaunchSpec:
    """Fit the plan's ranks on the cluster's nodes.  Raises what ``spec_on_cluster`` raises."""
    return spec_on_cluster(
        plan.problem.cluster,
        plan.chosen().world_size,
        job_name(plan.problem.model.name, plan.plan_id),
        script,
        environment,
        arguments,
        process_drives_node=process_drives_node,
        files=files,
        settings=settings,
        plan_id=plan.plan_id,
    )


def job_name(model: str, plan_id: str) -> str:
    """A name that every launcher accepts."""
    name = _NAME.sub("-", model).strip("-.") or "model"
    return f"{name}-{plan_id[:8]}"


def spec_on_cluster(  # one job, told once
    cluster: Cluster,
    world_size: int,
    name: str,
    script: str,
    environment: Mapping[str, str],
    arguments: tuple[str, ...] = (),
    *,
    process_drives_node: bool = False,
    files: Mapping[str, str] | None = None,
    settings: LaunchSettings = LaunchSettings(),  # noqa: B008  # frozen
    plan_id: str = "",
) -> LaunchSpec:
    """Fit ``world_size`` ranks on the cluster's nodes.

    Nodes are filled completely: every launcher starts equally many ranks a node.  Of a cluster with several pools the
    ranks fill all, one after the other.

    Raises BackEndRefused when the world size is not a whole number of nodes, or not all devices of several pools;
    DocumentInvalid when fewer hosts are named than nodes are needed, or a variable contradicts the plan's own.
    """
    num_nodes, devices_per_node = _nodes(cluster, world_size)
    if settings.hosts and len(settings.hosts) < num_nodes:
        raise DocumentInvalid(
            f"{len(settings.hosts)} hosts for {num_nodes} nodes of {devices_per_node} devices",
            where="--hosts",
            hint=f"name at least {num_nodes} hosts; the first {num_nodes} are used",
        )
    first = cluster.pools[0]
    _demand_agreement(environment, settings)
    return LaunchSpec(
        job_name=name,
        num_nodes=num_nodes,
        devices_per_node=devices_per_node,
        script=script,
        arguments=arguments,
        environment={**environment, **settings.variables()},
        process_drives_node=process_drives_node,
        vendor=first.device.vendor,
        rdma=num_nodes > 1 and first.nics_per_node > 0,
        order_matters=why_order_matters(cluster, num_nodes),
        files=dict(files or {}),
        settings=settings,
        architecture=first.device.architecture,
        scale_up_domain=first.scale_up.domain_size,
        plan_id=plan_id,
        groups=node_groups(cluster),
    )


def _nodes(cluster: Cluster, world_size: int) -> tuple[int, int]:
    """Nodes of the job, and devices of each (the most, where the pools' nodes differ).  Raises BackEndRefused."""
    most = max(pool.devices_per_node for pool in cluster.pools)
    if len(cluster.pools) > 1:
        if world_size != cluster.num_devices:
            raise BackEndRefused(
                f"{world_size} ranks do not fill the {cluster.num_devices} devices of {len(cluster.pools)} pools, which"
                " their order does",
                hint="plan over the pools with --pool, or on one of them with --cluster",
            )
        return sum(pool.num_nodes for pool in cluster.pools), most
    devices_per_node = min(most, world_size)
    if world_size % devices_per_node:
        raise BackEndRefused(
            f"{world_size} ranks are not a whole number of nodes of {devices_per_node} devices",
            hint=f"plan for a multiple of {devices_per_node} devices",
        )
    return world_size // devices_per_node, devices_per_node


def _demand_agreement(environment: Mapping[str, str], settings: LaunchSettings) -> None:
    """Raises DocumentInvalid for a variable that the plan needs at another value than the user's."""
    given = settings.variables()
    problems = [
        f"the plan needs {name}={value}, --env says {given[name]!r}"
        for name, value in sorted(environment.items())
        if given.get(name, value) != value
    ]
    if problems:
        raise DocumentInvalid("; ".join(problems), where="--env", hint="leave it out, or plan for what you want to set")


def order_note(spec: LaunchSpec, assumed: str) -> tuple[str, ...]:
    """``assumed``: what the launcher does by itself.  Nothing where the order makes no difference."""
    kinds = tuple(f"{each.words[0].upper()}{each.words[1:]}." for each in spec.groups)
    if spec.hosts:
        return (*kinds, f"Node rank r runs on line r+1 of {HOSTS_FILE} (given with --hosts).")
    if kinds:
        return kinds
    if not spec.order_matters:
        return ()
    give = "Give the order with `meshwright emit ... --hosts FILE`: one host a line, or `scontrol show topology`."
    return (f"The order of the nodes counts: {spec.order_matters}.", f"Assumed: {assumed}.", give)


def why_order_matters(cluster: Cluster, num_nodes: int) -> str:
    """The reasons in words; empty where every order of the nodes is as good as any other."""
    if num_nodes < 2:
        return ""
    reasons = []
    crossed = [level for level in cluster.fabric if level.num_nodes < num_nodes]
    if crossed:
        inner = crossed[0]
        reasons.append(f"a {inner.name} switch holds {inner.num_nodes} of the {num_nodes} nodes of the job")
    # A level carries traffic of the job only where the job fills more than one switch of the level below.
    reasons += [
        f"the {level.name} level carries {level.oversubscription:g} times less than enters it"
        for position, level in enumerate(cluster.fabric)
        if level.oversubscription > 1 and (position == 0 or cluster.fabric[position - 1].num_nodes < num_nodes)
    ]
    pool = cluster.pools[0]
    if pool.scale_up.domain_size > pool.devices_per_node:
        shape = "torus" if pool.scale_up.kind == "torus" else "scale-up domain"
        nodes = pool.scale_up.domain_size // pool.devices_per_node
        reasons.append(f"a {shape} of {pool.scale_up.domain_size} devices spans {nodes} nodes")
    return "; ".join(reasons)
