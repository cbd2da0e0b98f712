"""The software that a question is about: from ``constraints.backends`` to back-ends, spaces and physics.

The search, estimates and everything that costs a plan work on a question that names one back-end; ``inside`` makes it.
"""

from __future__ import annotations

from planner.backends.backend import Software
from planner.backends.registry import software, with_files
from planner.errors import DocumentInvalid
from planner.plan.plan import Plan
from planner.predict.cost.hardware import Hardware
from planner.predict.cost.hardware import problem_hardware as hardware_under
from planner.predict.physics.physics import Physics
from planner.question.problem import ANY, Problem


def asked_software(problem: Problem) -> tuple[Software, ...]:
    """Every back-end that a question names; ``any`` = all that files can be written for.  Raises NotFound."""
    names = problem.constraints.backends
    if names == (ANY,):
        return tuple(Software(each, each.releases[0]) for each in with_files())
    return tuple(software(name) for name in names)


def the_software(problem: Problem) -> Software:
    """The one back-end of a question that names one.  Raises NotFound, DocumentInvalid where it names several."""
    found = asked_software(problem)
    if len(found) != 1:
        raise DocumentInvalid(
            f"{len(found)} back-ends are asked, and this needs one",
            where="--backend",
            hint=f"name one of {', '.join(each.spelled for each in found)}",
        )
    return found[0]


def inside(problem: Problem, wanted: Software) -> Problem:
    """The same question to one back-end."""
    if problem.constraints.backends == (wanted.spelled,):
        return problem
    constraints = problem.constraints.model_copy(update={"backends": (wanted.spelled,)})
    return problem.model_copy(update={"constraints": constraints})


def software_of(plan: Plan) -> Software:
    """What runs a plan.  Raises NotFound for a back-end or release that is not known here."""
    return software(f"{plan.backend}=={plan.release}" if plan.release else plan.backend)


def problem_of(plan: Plan) -> Problem:
    """The question that a plan answers, to the plan's own back-end."""
    return inside(plan.problem, software_of(plan))


def physics_of(plan: Plan) -> Physics:
    """Under whose physics a plan was predicted."""
    return software_of(plan).release.physics


def problem_hardware(problem: Problem) -> Hardware:
    """The hardware of a question that names one back-end, run by that software."""
    return hardware_under(problem, the_software(problem).release.physics)


def why_not_these_devices(wanted: Software, problem: Problem) -> str | None:
    """Why a back-end cannot train on the devices of a question; None where it can."""
    makers = wanted.backend.vendors
    device = problem.cluster.pools[0].device
    if not makers or device.vendor in makers:
        return None
    return f"trains on devices of {', '.join(sorted(makers))}; {device.name} is made by {device.vendor}"
