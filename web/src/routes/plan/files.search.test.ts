import { expect, test } from "vitest";
import { readNewPlanSearch } from "../new-plan.search";
import { readFilesSearch } from "./files.search";

test("links of earlier releases still open what they meant", () => {
  const said = readFilesSearch({ target: "titan", version: "0.2.2", launcher: "slurm" });
  expect(JSON.parse(JSON.stringify(said))).toEqual({ backend: "titan==0.2.2", launcher: "slurm" });
  // The router keeps what is not named: the old names go.
  expect(said).toMatchObject({ target: undefined, version: undefined });
  expect(readNewPlanSearch({ target: "titan" }).backend).toBe("titan");
  expect(readNewPlanSearch({ target: "any" }).backend).toBeUndefined();
});

test("today's name wins over an earlier one", () => {
  expect(readFilesSearch({ target: "titan", backend: "bare" }).backend).toBe("bare");
});
