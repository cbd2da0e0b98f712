"""The deployment files fit the software: flags, routes, metrics and Kubernetes objects that they name exist."""

from __future__ import annotations

import configparser
import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from api.access.host_names import ENVIRONMENT_VARIABLE, hosts_of_environment
from api.app import create_app
from api.settings import Settings
from api.telemetry.metrics import Metrics
from planner.backends.checking.launchers.kubernetes_validate import KUBERNETES_RELEASE
from tests.command_line import REPOSITORY, run_here
from tests.validators import worker_or_skip

FOLDER = REPOSITORY / "docs" / "deployment"
UNITS = ("meshwright.service", "meshwright-worker.service")


def objects() -> list[dict[str, Any]]:
    return list(YAML(typ="safe").load_all((FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")))


def containers() -> list[dict[str, Any]]:
    pods = [each["spec"]["template"]["spec"] for each in objects() if "template" in each["spec"]]
    return [container for pod in pods for container in pod["containers"]]


def command_lines() -> dict[str, list[str]]:
    """Words after ``meshwright`` of everything that starts it."""
    lines = {container["name"]: list(container["args"]) for container in containers()}
    for name in UNITS:
        unit = configparser.ConfigParser(interpolation=None, strict=False)
        unit.optionxform = str  # type: ignore[assignment, method-assign]
        unit.read_string((FOLDER / name).read_text(encoding="utf-8"))
        program, *words = shlex.split(unit["Service"]["ExecStart"])
        assert Path(program).name == "meshwright"
        lines[name] = words
    default = re.search(r"^CMD (\[.*\])$", (FOLDER / "Containerfile").read_text(encoding="utf-8"), re.MULTILINE)
    assert default is not None
    lines["Containerfile"] = json.loads(default.group(1))
    return lines


@pytest.mark.parametrize("name", sorted(command_lines()))
def test_every_command_and_flag_exists(name: str) -> None:
    words = command_lines()[name]
    flags = [word for word in words if word.startswith("--")]
    command = words[: words.index(flags[0])] if flags else words
    shown = run_here(*command, "--help")
    assert shown.exit_code == 0, shown.stderr
    assert [flag for flag in flags if flag not in shown.stdout] == []


def test_probes_and_scrapes_ask_routes_that_exist() -> None:
    known = set(create_app(Settings(job_concurrency=0), None).openapi()["paths"])
    probes = [container[kind]["httpGet"]["path"] for container in containers() for kind in container if "Probe" in kind]
    annotations = [
        each["spec"]["template"]["metadata"].get("annotations", {})
        for each in objects()
        if each["kind"] == "Deployment"
    ]
    scraped = [each["prometheus.io/path"] for each in annotations if each]
    assert {*probes, *scraped} == {"/livez", "/readyz", "/metrics"}
    assert {*probes, *scraped} <= known


def test_the_service_in_kubernetes_is_asked_by_its_own_name() -> None:
    (name,) = [each["metadata"]["name"] for each in objects() if each["kind"] == "Service"]
    (api,) = [container for container in containers() if container["name"] == "api"]
    (said,) = [each["value"] for each in api["env"] if each["name"] == ENVIRONMENT_VARIABLE]
    allowed = Settings(allowed_hosts=hosts_of_environment({ENVIRONMENT_VARIABLE: said}) or ()).allowed_hosts
    assert {name, f"{name}.default.svc.cluster.local"} <= set(allowed)


def test_the_dashboard_asks_metrics_that_exist() -> None:
    metrics = Metrics()
    metrics.observe_request("GET", "/v1/plans", 200, 0.1)
    metrics.observe_solve("plan", "done", 0.1)
    metrics.count_answer("search")
    known = set(re.findall(r"^(meshwright_\w+)", metrics.page().decode(), re.MULTILINE))
    panels = json.loads((FOLDER / "grafana-dashboard.json").read_text(encoding="utf-8"))["panels"]
    asked = {
        name
        for panel in panels
        for target in panel["targets"]
        for name in re.findall(r"meshwright_\w+", target["expr"])
    }
    assert len(asked) >= 8
    assert asked <= known


def test_kubernetes_takes_the_objects() -> None:
    text = (FOLDER / "kubernetes.yaml").read_text(encoding="utf-8")
    with worker_or_skip("kubernetes-validate") as worker:
        verdict = worker.ask(
            {"manifests": {"kubernetes.yaml": text}, "kubernetes": KUBERNETES_RELEASE, "most_devices": {}}
        )
        assert verdict.accepted, verdict.message
        wrong = worker.ask(
            {
                "manifests": {"kubernetes.yaml": text.replace("readinessProbe", "readyProbe")},
                "kubernetes": KUBERNETES_RELEASE,
                "most_devices": {},
            }
        )
        assert not wrong.accepted
