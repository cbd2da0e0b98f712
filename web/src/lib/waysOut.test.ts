import { expect, test } from "vitest";
import { readNewPlanSearch } from "../routes/new-plan.search";
import { waysOut } from "./waysOut";

const draft = readNewPlanSearch.full({ pins: "tp=8, pp=4", forbid: "cp recompute" });

test("each way out is a change of the question; what is none stays a sentence", () => {
  const said = "use 128 devices; or drop the pin on tp; or allow cp; or lower --memory-margin to 0.06";
  const { ways, others } = waysOut(
    [said, "halve the sequence length to 4096", "use --backend deepspeed", "use nodes with more host memory"],
    draft,
  );
  expect(ways.map((each) => each.change)).toEqual([
    { devices: "128" },
    { pins: "pp=4" },
    { forbid: "recompute" },
    { margin: "6" },
    { seq: "4096" },
    { backend: "deepspeed" },
  ]);
  expect(others).toEqual(["use nodes with more host memory"]);
});
