"""All benchmarks, in the order of the table."""

from __future__ import annotations

from benchmarks.cold_plans import cold_plan_specs
from benchmarks.emission_time import EMISSION_TIME
from benchmarks.fleet_allocation import FLEET_ALLOCATION
from benchmarks.help_page import HELP_PAGE
from benchmarks.heterogeneous_pools import HETEROGENEOUS_POOLS
from benchmarks.kineto_import import KINETO_IMPORT
from benchmarks.measurement import Spec
from benchmarks.pipeline_run import PIPELINE_RUN
from benchmarks.placement import PLACEMENT
from benchmarks.prediction import LOOKUP, PREDICTION
from benchmarks.prediction_import import IMPORT_TABLES
from benchmarks.profile_store import PROFILE_STORE
from benchmarks.published_runs import PUBLISHED_RUNS
from benchmarks.search_in_process import LEAF_BOUNDS, REPLAN, SPACE_RATE, WARM_PLANS

SPECS: tuple[Spec, ...] = (
    *cold_plan_specs(),
    LEAF_BOUNDS,
    SPACE_RATE,
    HELP_PAGE,
    EMISSION_TIME,
    REPLAN,
    WARM_PLANS,
    PIPELINE_RUN,
    HETEROGENEOUS_POOLS,
    FLEET_ALLOCATION,
    PLACEMENT,
    PROFILE_STORE,
    KINETO_IMPORT,
    IMPORT_TABLES,
    LOOKUP,
    PREDICTION,
    PUBLISHED_RUNS,
)
