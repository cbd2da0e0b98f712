"""The question that the flags ask a service: files of this machine as documents, names as names.

So a model or cluster that only the service knows can be named, and one that only this machine knows can be sent.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.cli.problem_inputs import (
    ProblemFlags,
    read_constraints,
    read_objective,
    read_workload,
    whole_number,
)
from planner.errors import Conflict, DocumentInvalid
from planner.operations.launch_files import megatron_script
from planner.operations.service import Service

if TYPE_CHECKING:
    from planner.answers.sweep.question import SweepQuestion

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a service takes as a name (``api.wire.questions.Name``)."""


def remote_question(service: Service, flags: ProblemFlags) -> dict[str, Any]:
    """The question, its files read and checked.  Raises DocumentInvalid, NotFound, Conflict."""
    whole_number(flags.devices, "--devices")
    if flags.cluster is None:
        raise DocumentInvalid("on which devices?", where="--cluster", hint="give --cluster C")
    script = flags.script or megatron_script(flags.model)
    asked = read_workload(flags.work, script.workload if script else {})
    return {
        "model": script.model.model_dump(mode="json") if script else model_part(flags.model),
        "cluster": cluster_part(flags.cluster),
        "devices": flags.devices or (script.num_devices if script else None),
        "workload": asked.model_dump(mode="json"),
        "constraints": read_constraints(flags.space).model_dump(mode="json"),
        "objective": read_objective(flags.space).model_dump(mode="json"),
        "profile": profile_name(service, flags.profile),
        **calibration_part(flags.calibration),
    }


def remote_sweep(service: Service, question: SweepQuestion, profile: str) -> dict[str, Any]:
    """The same for a sweep.  Raises NotFound, DocumentInvalid, Conflict."""
    return {
        **question.model_dump(mode="json"),
        "models": [model_part(each) for each in dict.fromkeys(question.models)],
        "clusters": [cluster_part(each) for each in dict.fromkeys(question.clusters)],
        "profile": profile_name(service, profile),
    }


def model_part(reference: str) -> str | Mapping[str, Any]:
    """A name that the service knows, or the document of a file.  Raises NotFound, DocumentInvalid."""
    from planner.model.builtin import builtin_models

    if reference.strip().lower() in builtin_models():
        return reference.strip().lower()
    from planner.operations.models import model_is_file

    if NAME.fullmatch(reference) and not model_is_file(reference):
        return reference
    from planner.model.load import load_model

    return load_model(reference).model_dump(mode="json")


def cluster_part(reference: str) -> str | Mapping[str, Any]:
    """The same for a cluster.  Raises NotFound, DocumentInvalid, Conflict for one of several pools."""
    from profiles.catalogue import builtin_clusters, is_cluster_path, load_cluster

    if NAME.fullmatch(reference) and not is_cluster_path(reference):
        return reference.lower() if reference.lower() in builtin_clusters() else reference
    cluster = load_cluster(reference)
    if len(cluster.pools) > 1:
        raise Conflict(
            f"{reference} has {len(cluster.pools)} pools; a service plans over one",
            where="--cluster",
            hint="plan over several pools on this machine: drop --server",
        )
    return cluster.model_dump(mode="json")


def calibration_part(text: str | None) -> dict[str, Any]:
    """The id of one that the service keeps, or the document of a file.  Raises NotFound, DocumentInvalid."""
    from planner.operations.calibration_choice import calibration_file

    if text is None:
        return {}
    document = calibration_file(text)
    return {"calibration": text if document is None else document.model_dump(mode="json")}


def profile_name(service: Service, text: str) -> str:
    """``auto``, ``none``, or a profile that the service holds."""
    if NAME.fullmatch(text) and not Path(text).exists():
        return text
    raise DocumentInvalid(
        "the measurements lie in a file of this machine",
        where="--profile",
        hint=f"import them where {service.address} runs, or drop --server",
    )
