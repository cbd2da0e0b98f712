/** Which stretches of a block belong to whom?  In the fabric's order. */

import type { Fleet } from "../../api/queries/fleets";

export interface Run {
  /** Place of the job in the answer; undefined: nobody has these nodes. */
  readonly job: number | undefined;
  readonly start: number;
  readonly nodes: readonly string[];
}

export interface BlockRuns {
  readonly name: string;
  readonly size: number;
  readonly runs: readonly Run[];
}

export interface PoolRuns {
  readonly name: string;
  readonly blocks: readonly BlockRuns[];
}

/** Every pool with its blocks; a block none of whose nodes may be given is left out. */
export function poolRuns(fleet: Fleet): readonly PoolRuns[] {
  const owner = new Map(
    fleet.jobs.flatMap((job, place) => (job.nodes ?? []).map((name) => [name, place] as const)),
  );
  return fleet.pools.map((pool) => ({
    name: pool.name,
    blocks: (pool.blocks ?? [])
      .filter(({ nodes }) => nodes.length > 0)
      .map(({ name, nodes }) => ({ name, size: nodes.length, runs: runsOf(nodes, owner) })),
  }));
}

function runsOf(nodes: readonly string[], owner: ReadonlyMap<string, number>): readonly Run[] {
  const runs: { job: number | undefined; start: number; nodes: string[] }[] = [];
  nodes.forEach((name, start) => {
    const job = owner.get(name);
    const last = runs.at(-1);
    if (last !== undefined && last.job === job) last.nodes.push(name);
    else runs.push({ job, start, nodes: [name] });
  });
  return runs;
}
