/**
 * Which screen is at which address?  Screens are loaded when they are opened; each names its view state in
 * `<screen>.search.ts` beside it, and nothing else of a screen is known here.
 */

import type { QueryClient } from "@tanstack/react-query";
import {
  createRootRouteWithContext,
  createRoute,
  createRouter,
  lazyRouteComponent,
} from "@tanstack/react-router";
import { planQuery } from "./api/queries/plans";
import { Loading } from "./components/Loading";
import { ProblemNotice } from "./components/ProblemNotice";
import { Shell } from "./components/Shell";
import { parseAddress, writeAddress } from "./lib/address";
import { shortId } from "./lib/format";
import { readAccuracySearch } from "./routes/accuracy.search";
import { readClustersSearch } from "./routes/clusters.search";
import { readCompareSearch } from "./routes/compare.search";
import { readFleetSearch } from "./routes/fleet.search";
import { readJobSearch } from "./routes/job.search";
import { readJobsSearch } from "./routes/jobs.search";
import { readModelsSearch } from "./routes/models.search";
import { readNewPlanSearch } from "./routes/new-plan.search";
import { readAlternativesSearch } from "./routes/plan/alternatives.search";
import { readFilesSearch } from "./routes/plan/files.search";
import { readGoodputSearch } from "./routes/plan/goodput.search";
import { readMemorySearch } from "./routes/plan/memory.search";
import { readMeshSearch } from "./routes/plan/mesh.search";
import { readSensitivitySearch } from "./routes/plan/sensitivity.search";
import { readTimelineSearch } from "./routes/plan/timeline.search";
import { readWhatIfSearch } from "./routes/plan/what-if.search";
import { readPlansSearch } from "./routes/plans.search";

const root = createRootRouteWithContext<{ queries: QueryClient }>()({
  component: Shell,
  notFoundComponent: lazyRouteComponent(() => import("./components/NotFound"), "NotFound"),
});

const newPlan = createRoute({
  getParentRoute: () => root,
  path: "/",
  validateSearch: readNewPlanSearch,
  component: lazyRouteComponent(() => import("./routes/new-plan"), "NewPlan"),
  staticData: { crumb: () => "New plan" },
});

const plans = createRoute({
  getParentRoute: () => root,
  path: "/plans",
  staticData: { crumb: () => "Plans" },
});
const plansIndex = createRoute({
  getParentRoute: () => plans,
  path: "/",
  validateSearch: readPlansSearch,
  component: lazyRouteComponent(() => import("./routes/plans"), "Plans"),
});

const plan = createRoute({
  getParentRoute: () => plans,
  path: "$planId",
  // Begins while the screen's code is on its way.
  loader: ({ context, params }) => void context.queries.prefetchQuery(planQuery(params.planId)),
  component: lazyRouteComponent(() => import("./routes/plan"), "PlanScreen"),
  staticData: { crumb: (params) => shortId(params.planId ?? "") },
});

const planTabs = [
  createRoute({
    getParentRoute: () => plan,
    path: "/",
    component: lazyRouteComponent(() => import("./routes/plan/overview"), "Overview"),
  }),
  createRoute({
    getParentRoute: () => plan,
    path: "timeline",
    validateSearch: readTimelineSearch,
    component: lazyRouteComponent(() => import("./routes/plan/timeline"), "Timeline"),
    staticData: { crumb: () => "Timeline" },
  }),
  createRoute({
    getParentRoute: () => plan,
    path: "memory",
    validateSearch: readMemorySearch,
    component: lazyRouteComponent(() => import("./routes/plan/memory"), "Memory"),
    staticData: { crumb: () => "Memory" },
  }),
  createRoute({
    getParentRoute: () => plan,
    path: "mesh",
    validateSearch: readMeshSearch,
    component: lazyRouteComponent(() => import("./routes/plan/mesh"), "Mesh"),
    staticData: { crumb: () => "Mesh" },
  }),
  createRoute({
    getParentRoute: () => plan,
    path: "alternatives",
    validateSearch: readAlternativesSearch,
    component: lazyRouteComponent(() => import("./routes/plan/alternatives"), "Alternatives"),
    staticData: { crumb: () => "Alternatives" },
  }),
  createRoute({
    getParentRoute: () => plan,
    path: "what-if",
    validateSearch: readWhatIfSearch,
    component: lazyRouteComponent(() => import("./routes/plan/what-if"), "WhatIf"),
    staticData: { crumb: () => "What-if" },
  }),
  createRoute({
    getParentRoute: () => plan,
    path: "sensitivity",
    validateSearch: readSensitivitySearch,
    component: lazyRouteComponent(() => import("./routes/plan/sensitivity"), "SensitivityTab"),
    staticData: { crumb: () => "Sensitivity" },
  }),
  createRoute({
    getParentRoute: () => plan,
    path: "goodput",
    validateSearch: readGoodputSearch,
    component: lazyRouteComponent(() => import("./routes/plan/goodput"), "GoodputTab"),
    staticData: { crumb: () => "Goodput" },
  }),
  createRoute({
    getParentRoute: () => plan,
    path: "files",
    validateSearch: readFilesSearch,
    component: lazyRouteComponent(() => import("./routes/plan/files"), "Files"),
    staticData: { crumb: () => "Files" },
  }),
  createRoute({
    getParentRoute: () => plan,
    path: "diagnose",
    component: lazyRouteComponent(() => import("./routes/plan/diagnose"), "DiagnoseTab"),
    staticData: { crumb: () => "Diagnose" },
  }),
];

const jobs = createRoute({ getParentRoute: () => root, path: "/jobs", staticData: { crumb: () => "Jobs" } });
const jobsIndex = createRoute({
  getParentRoute: () => jobs,
  path: "/",
  validateSearch: readJobsSearch,
  component: lazyRouteComponent(() => import("./routes/jobs"), "Jobs"),
});
const job = createRoute({
  getParentRoute: () => jobs,
  path: "$jobId",
  validateSearch: readJobSearch,
  component: lazyRouteComponent(() => import("./routes/job"), "Job"),
  staticData: { crumb: (params) => shortId(params.jobId ?? "") },
});

const diff = createRoute({
  getParentRoute: () => root,
  path: "/diff/$a/$b",
  component: lazyRouteComponent(() => import("./routes/diff"), "Diff"),
  staticData: { crumb: ({ a = "", b = "" }) => `${shortId(a)} against ${shortId(b)}` },
});

const compare = createRoute({
  getParentRoute: () => root,
  path: "/compare",
  validateSearch: readCompareSearch,
  component: lazyRouteComponent(() => import("./routes/compare"), "Compare"),
  staticData: { crumb: () => "Compare clusters" },
});

const models = createRoute({
  getParentRoute: () => root,
  path: "/models",
  validateSearch: readModelsSearch,
  component: lazyRouteComponent(() => import("./routes/models"), "Models"),
  staticData: { crumb: () => "Models" },
});

const clusters = createRoute({
  getParentRoute: () => root,
  path: "/clusters",
  validateSearch: readClustersSearch,
  component: lazyRouteComponent(() => import("./routes/clusters"), "Clusters"),
  staticData: { crumb: () => "Clusters & profiles" },
});

const fleet = createRoute({
  getParentRoute: () => root,
  path: "/fleet",
  validateSearch: readFleetSearch,
  component: lazyRouteComponent(() => import("./routes/fleet"), "FleetScreen"),
  staticData: { crumb: () => "Share a fleet" },
});

const accuracy = createRoute({
  getParentRoute: () => root,
  path: "/accuracy",
  validateSearch: readAccuracySearch,
  component: lazyRouteComponent(() => import("./routes/accuracy"), "Accuracy"),
  staticData: { crumb: () => "Accuracy" },
});

const tree = root.addChildren([
  newPlan,
  plans.addChildren([plansIndex, plan.addChildren(planTabs)]),
  jobs.addChildren([jobsIndex, job]),
  diff,
  compare,
  fleet,
  models,
  clusters,
  accuracy,
]);

export function createAppRouter(queries: QueryClient) {
  return createRouter({
    routeTree: tree,
    context: { queries },
    parseSearch: parseAddress,
    stringifySearch: writeAddress,
    defaultPreload: "intent",
    defaultPendingComponent: () => <Loading label="screen" height={320} lines={5} />,
    defaultErrorComponent: ({ error, reset }) => <ProblemNotice error={error} onRetry={reset} />,
    scrollRestoration: true,
  });
}

declare module "@tanstack/react-router" {
  interface Register {
    router: ReturnType<typeof createAppRouter>;
  }
}
