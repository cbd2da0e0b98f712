"""Instances of a deployment, and its pools of them, as arrays over loads."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from planner.model.spec import ModelSpec
from planner.serving.layout import Deployment, Formats, InstanceGroup
from planner.serving.predict.behaviour import Behaviour
from planner.serving.predict.curve import MEAN, InstanceCurve, instance_curve, unfit
from planner.serving.predict.instance_times import InstanceTimes, instance_times
from planner.serving.predict.iteration_operators import iteration_operators
from planner.serving.predict.iteration_time import IterationTimes, Links
from planner.serving.predict.lengths import RequestSizes, request_sizes
from planner.serving.predict.memory import DeviceMemory, device_memory
from planner.serving.traffic import ServingTraffic
from planner.serving.words import Role
from profiles.cluster import Cluster
from profiles.serving_kernels.kernel_times import KernelTimes

Array = NDArray[np.float64]
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class LoadCurve:
    """A deployment at ``loads`` requests in flight, arrays; times are means, seconds."""

    fits: bool
    reason: str
    loads: Array
    requests_per_s: Array
    output_tokens_per_s: Array
    ttft_s: Array
    tpot_s: Array


class Pools:
    """Instances of one engine and model on one cluster.

    Iteration times are kept by layout, formats and lengths: a search asks thousands of deployments of few layouts.
    """

    def __init__(self, model: ModelSpec, cluster: Cluster, kernels: KernelTimes, behaviour: Behaviour) -> None:
        """``cluster``: its first pool is what instances run on."""
        self.model, self.cluster, self.kernels, self.behaviour = model, cluster, kernels, behaviour
        self.pool = cluster.pools[0]
        self.links = Links.of_pool(self.pool)
        self._iterations: dict[object, IterationTimes] = {}
        self._times: dict[object, InstanceTimes] = {}
        self._memory: dict[object, DeviceMemory] = {}

    def iteration_times(self, group: InstanceGroup, formats: Formats) -> IterationTimes:
        """Times of the iterations of an instance of this group."""
        exchange = group.settings.expert_exchange
        key = (group.layout, formats, exchange)
        if key not in self._iterations:
            operators = iteration_operators(self.model, group.layout, formats, expert_exchange=exchange)
            self._iterations[key] = IterationTimes(operators, self.kernels, formats.kv_cache, self.links)
        return self._iterations[key]

    def memory(self, group: InstanceGroup, formats: Formats) -> DeviceMemory:
        """Memory of a device of this group."""
        key = (group.layout, group.settings, formats)
        if key not in self._memory:
            device_bytes = float(self.pool.device.memory_bytes)
            self._memory[key] = device_memory(self.model, device_bytes, group, formats, self.behaviour)
        return self._memory[key]

    def instance_times(self, traffic: ServingTraffic, group: InstanceGroup, formats: Formats) -> InstanceTimes:
        """Curves of the iterations of an instance at this traffic's lengths."""
        sizes = request_sizes(traffic, prefix_caching=group.settings.prefix_caching)
        key = (group.layout, group.settings, formats, sizes, traffic.acceptance)
        if key not in self._times:
            self._times[key] = instance_times(
                self.iteration_times(group, formats),
                group,
                sizes,
                self.behaviour,
                float(self.pool.device.memory_bytes),
                acceptance=traffic.acceptance,
            )
        return self._times[key]

    def places(self, sizes: RequestSizes, group: InstanceGroup, formats: Formats) -> float:
        """Requests that the room for keys and values lets run at once in an instance; below 1 = none fits."""
        memory = self.memory(group, formats)
        if memory.requests(sizes.longest_tokens) < 1:
            return 0.0
        output = 0.0 if group.role == "prefill" else sizes.output_tokens * self.behaviour.held_output
        return memory.requests(sizes.new_tokens + sizes.cached_tokens + output)

    def instance_curve(
        self, traffic: ServingTraffic, deployment: Deployment, role: Role, loads: ArrayLike
    ) -> InstanceCurve:
        """One instance of the group with this role, at ``loads`` requests in flight there."""
        group = next(group for group in deployment.groups if group.role == role)
        return self.curve(traffic, group, deployment.formats, np.asarray(loads, dtype=np.float64))

    def predicted_at(
        self, traffic: ServingTraffic, deployment: Deployment, loads: ArrayLike, *, waves: float = math.inf
    ) -> LoadCurve:
        """The deployment at ``loads`` requests in flight in all (closed loop); the traffic's own load is not read.

        ``waves``: requests of a benchmark for each in flight, of which the first come together.
        """
        wanted = np.asarray(loads, dtype=np.float64)
        if deployment.disaggregated:
            return self._pools(traffic, deployment, wanted, waves)
        group = deployment.groups[0]
        curve = self.curve(traffic, group, deployment.formats, np.maximum(wanted / group.num_instances, 1e-3), waves)
        if not curve.fits:
            return _no_curve(curve.reason)
        rate = curve.requests_per_s * group.num_instances
        tokens = rate * request_sizes(traffic).output_tokens
        return LoadCurve(True, "", wanted, rate, tokens, curve.ttft_s[MEAN], curve.tpot_s[MEAN])

    def kv_transfer_s(self, traffic: ServingTraffic, deployment: Deployment) -> float:
        """Keys and values of a mean prompt, from prefill to decode devices, over the network of the narrower side."""
        sizes = request_sizes(traffic)
        prefill, decode = deployment.groups
        need = self.memory(prefill, deployment.formats).need.of_request(sizes.new_tokens + sizes.cached_tokens)
        senders = prefill.layout.tp * prefill.layout.pp * prefill.layout.cp
        receivers = decode.layout.tp * decode.layout.pp
        rate = self.links.network_bytes_per_s * min(senders, receivers)
        return need * senders / rate + self.links.network_latency_s

    def curve(
        self, traffic: ServingTraffic, group: InstanceGroup, formats: Formats, loads: Array, waves: float = math.inf
    ) -> InstanceCurve:
        """One instance of a group, at ``loads`` requests in flight there."""
        sizes = request_sizes(traffic, prefix_caching=group.settings.prefix_caching)
        places = self.places(sizes, group, formats)
        if places < 1:
            memory = self.memory(group, formats)
            weights, own = memory.weight_bytes / GIB, self.pool.device.memory_bytes / GIB
            if weights >= own:
                return unfit(f"weights take {weights:,.1f} GiB of a device that has {own:,.1f} GiB")
            return unfit(
                f"weights take {weights:,.1f} GiB of a device, the engine keeps {memory.reserved_bytes / GIB:,.1f} GiB,"
                f" and the rest holds no request of {sizes.longest_tokens:,.0f} tokens"
            )
        times = self.instance_times(traffic, group, formats)
        return instance_curve(times, sizes, group.role, loads, places, waves=waves)

    def _pools(self, traffic: ServingTraffic, deployment: Deployment, wanted: Array, waves: float) -> LoadCurve:
        """Prefill and decode instances in one closed loop.

        Prompts queue for the next free of all prefill instances (wait ``t / 2c x u^sqrt(2c + 2) / (1 - u)`` of M/D/c at
        use ``u``, Sakasegawa 1977, at most all other requests' prompts), keys and values move, decode instances share
        the requests evenly; Little's law over the three, by damped iteration.  Of ``waves`` the first comes together.
        """
        prefill, decode = deployment.groups
        read = self.curve(traffic, prefill, deployment.formats, np.array([1.0, 4096.0]))
        if not read.fits:
            return _no_curve(f"prefill: {read.reason}")
        places = np.geomspace(1.0, 8192.0, 40)
        run = self.curve(traffic, decode, deployment.formats, places)
        if not run.fits:
            return _no_curve(f"decode: {run.reason}")
        transfer = self.kv_transfer_s(traffic, deployment)
        alone = float(read.ttft_s[MEAN][0])
        most = float(read.requests_per_s[1]) * prefill.num_instances
        tokens = request_sizes(traffic).output_tokens
        finish = run.loads / run.requests_per_s
        rate = np.minimum(wanted / (alone + transfer + finish[0]), 0.9 * most)
        wait, decoding = np.zeros_like(wanted), np.full_like(wanted, finish[0])
        for _ in range(60):
            use = np.minimum(rate / most, 0.995)
            servers = prefill.num_instances
            wait = alone / (2 * servers) * use ** np.sqrt(2 * servers + 2) / (1 - use)
            wait = np.minimum(wait, np.maximum(wanted - 1, 0.0) / most)
            decoding = np.interp(rate / decode.num_instances, run.requests_per_s, finish)
            inside = np.maximum(wanted - rate * (alone + wait + transfer), 1.0) / decode.num_instances
            decoding = np.maximum(decoding, np.interp(inside, run.loads, finish))
            rate = 0.5 * rate + 0.5 * np.minimum(wanted / (alone + wait + transfer + decoding), most)
        first = np.maximum(wanted / rate - decoding, alone + transfer)
        together = np.maximum(alone + transfer + wanted / (2 * most), first)
        first = first + (together - first) / waves
        return LoadCurve(True, "", wanted, rate, rate * tokens, first, decoding / max(tokens - 1, 1.0))


def _no_curve(reason: str) -> LoadCurve:
    nothing = np.zeros(0)
    return LoadCurve(False, reason, nothing, nothing, nothing, nothing, nothing)
