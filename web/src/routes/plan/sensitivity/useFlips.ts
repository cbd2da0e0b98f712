/** Under which changes is another plan best?  One change after the other, so that each answer shows as it comes. */

import { useQueries, useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { type SensitivityPoint, sensitivityQuery } from "../../../api/queries/sensitivity";

export interface Flips {
  readonly points: readonly SensitivityPoint[];
  readonly done: number;
  readonly error: Error | null;
  readonly retry: () => void;
  readonly stop: () => void;
}

export function useFlips(planId: string, changes: readonly number[], wanted: boolean): Flips {
  const queries = useQueryClient();
  const [turn, setTurn] = useState(0);
  const results = useQueries({
    queries: changes.map((change, index) => ({
      ...sensitivityQuery(planId, [change], true),
      enabled: wanted && index <= turn,
    })),
  });
  const done = results.filter((each) => each.isSuccess).length;
  const failed = results.find((each) => each.isError);
  // Searches keep a whole process of the service busy: the next one begins when the last one has ended.
  useEffect(() => setTurn(done), [done]);
  return {
    points: results.flatMap((each) => each.data?.points ?? []),
    done,
    error: failed?.error ?? null,
    retry: () => void failed?.refetch(),
    stop: () => {
      for (const change of changes) {
        const { queryKey } = sensitivityQuery(planId, [change], true);
        void queries.cancelQueries({ queryKey });
      }
    },
  };
}
