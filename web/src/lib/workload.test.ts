import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import type { Schemas } from "../api/client";
import { typedWorkload, workloadOf } from "./workload";

const NOTHING = { routing: "", sequences: "", workloadMore: "" } as const;
type Workload = Partial<Schemas["Workload"]>;

test("nothing typed is nothing said", () => {
  expect(JSON.parse(JSON.stringify(workloadOf(NOTHING)))).toEqual({});
});

test.each<[string, Workload]>([
  ["routing", { routing: { kind: "even" } }],
  ["an exponent", { routing: { kind: "zipf", exponent: 0.3 } }],
  ["a histogram of experts", { routing: { kind: "histogram", tokens: [3, 1] } }],
  ["a mean", { sequences: { kind: "padded", mean: 640 } }],
  [
    "percentiles",
    {
      sequences: {
        kind: "packed",
        mean: 640,
        percentiles: [
          [50, 400],
          [99.5, 4000],
        ],
        packing: "balanced",
      },
    },
  ],
  [
    "counts of lengths",
    {
      sequences: {
        kind: "packed",
        histogram: [
          [512, 3],
          [1024, 1],
        ],
      },
    },
  ],
  ["what has no field", { gradient_dtype: "bf16", images_per_sample: 2, dropout: true }],
  ["other towers and an encoder", { audio_clips_per_sample: 1, source_length: 512 }],
  ["formats", { fp8_recipe: "mxfp8", optimizer_states: { first: "fp8", second: "bf16", master: "fp16" } }],
])("%s comes back from the text of a plan as it was", (_, said) => {
  expect(JSON.parse(JSON.stringify(workloadOf(typedWorkload(said))))).toEqual(said);
});

test.each<[Workload["image_counts"], string]>([
  [{ mean: 3.2 }, "mean:3.2"],
  [
    {
      percentiles: [
        [50, 1],
        [99, 8],
      ],
    },
    "p50:1+p99:8",
  ],
  [
    {
      histogram: [
        [0, 120],
        [1, 400],
      ],
    },
    "0:120+1:400",
  ],
])("%j is shown as text that the service reads", (image_counts, text) => {
  const typed = typedWorkload({ image_counts } as Workload);
  expect(typed.workloadMore).toBe(`image_counts=${text}`);
  expect(workloadOf(typed).image_counts).toBe(text);
});

test("text that is no document is sent and refused by the server", () => {
  expect(workloadOf({ ...NOTHING, routing: "zipf:x", sequences: "packed,mean=y" })).toMatchObject({
    routing: { kind: "zipf", exponent: "x" },
    sequences: { kind: "packed", mean: "y" },
  });
});

test("every field of a workload can be typed", () => {
  const document = JSON.parse(
    readFileSync(new URL("../../../tests/golden/openapi.json", import.meta.url), "utf8"),
  );
  const names = Object.keys(document.components.schemas.Workload.properties);
  const own = [
    "schema_version",
    "global_batch_size",
    "sequence_length",
    "precision",
    "optimizer",
    "training",
  ];
  const texts = [
    "routing",
    "sequences",
    ...[
      "gradient_dtype",
      "images_per_sample",
      "audio_clips_per_sample",
      "image_counts",
      "audio_clip_counts",
      "source_length",
      "sample",
      "dropout",
    ],
    ...["fp8_recipe", "optimizer_states"],
  ];
  expect(names.sort()).toEqual([...own, ...texts].sort());
});
