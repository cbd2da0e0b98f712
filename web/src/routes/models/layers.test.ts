import { expect, test } from "vitest";
import { layerRows } from "./layers";

const ATTENTION = { kind: "gqa", num_heads: 32, head_dim: 128, num_kv_heads: 8, sliding_window: null };
const MLP = { gated: true, intermediate_size: 14336 };
const EXPERTS = { num_experts: 8, expert_intermediate_size: 1024, top_k: 2, shared_intermediate_size: 512 };

test("layers of one kind are counted together, in the order in which kinds come", () => {
  const rows = layerRows({
    vocab_size: 1,
    tie_embeddings: false,
    layer_kinds: [
      { attention: { ...ATTENTION, sliding_window: 128 }, mlp: MLP, moe: null },
      { attention: ATTENTION, mlp: null, moe: EXPERTS, cross: {} },
      { attention: { kind: "none" }, mlp: MLP, moe: null },
      { attention: { kind: "mamba2", num_heads: 128, head_dim: 64, state_size: 128 }, mlp: null, moe: null },
    ],
    layer_runs: [
      { kind: 0, count: 3 },
      { kind: 1, count: 1 },
      { kind: 0, count: 2 },
      { kind: 2, count: 1 },
      { kind: 3, count: 4 },
    ],
  });
  expect(rows.map((row) => [row.kind, row.count])).toEqual([
    [0, 5],
    [1, 1],
    [2, 1],
    [3, 4],
  ]);
  expect(rows[0]?.mixer).toBe("attention, 32 heads of 128, 8 for keys and values, window of 128");
  expect(rows[0]?.channels).toBe("gated MLP of 14,336");
  expect(rows[1]?.mixer).toBe("attention, 32 heads of 128, 8 for keys and values; cross-attention");
  expect(rows[1]?.channels).toBe("8 experts of 1,024, 2 a token, shared 512");
  expect(rows[2]?.mixer).toBe("nothing");
  expect(rows[3]).toMatchObject({ mixer: "Mamba-2, 128 heads of 64, state of 128", channels: "nothing" });
});
