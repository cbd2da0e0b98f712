/** Which keys does the map know?  Those of the whole screen; arrows count only on the map itself and are listed here. */

import type { RefObject } from "react";
import type { MapAxis, MeshView } from "../../../api/queries/mesh";
import { groupOf, memberIndex } from "../../../charts/mesh/groups";
import type { View } from "../../../charts/mesh/viewport";
import { type KeyBinding, useKeys } from "../../../lib/keys";

interface Screen {
  view: MeshView;
  axis: MapAxis;
  rank: number | undefined;
  surface: RefObject<HTMLCanvasElement | null>;
  select: (rank: number | undefined) => void;
  onAxis: (axis: string) => void;
  glide: (view: View) => void;
  steps: { nearer: View; farther: View; whole: View };
}

const GROUP = "Mesh map";

export function useMapKeys(screen: Screen): void {
  const { view, axis, rank, surface, select, onAxis, glide, steps } = screen;
  const member = (by: number) => {
    const group = groupOf(rank ?? 0, axis.factors);
    const at = rank === undefined ? 0 : memberIndex(rank, axis.factors) + by;
    select(group[(at + group.length) % group.length]);
  };
  const nextAxis = () => {
    const wide = view.axes.filter((each) => each.group_size > 1);
    const after = wide[(wide.findIndex((each) => each.axis === axis.axis) + 1) % wide.length];
    if (after) onAxis(after.axis);
  };
  const key = (keys: string, does: string, run: () => void): KeyBinding => ({
    keys,
    does,
    group: GROUP,
    run,
  });
  useKeys([
    key("m", "Go to the map", () => surface.current?.focus()),
    // No press is called so: on the map these are keys of its own.
    key("\u2190 \u2191 \u2192 \u2193", "On the map: the next rank in that direction", () => undefined),
    key("Home / End", "On the map: the first, the last rank", () => undefined),
    key("Esc", "On the map: no rank", () => undefined),
    key("a", "Next axis", nextAxis),
    key("[", "Previous rank of the group", () => member(-1)),
    key("]", "Next rank of the group", () => member(1)),
    key("+", "Zoom in", () => glide(steps.nearer)),
    key("=", "Zoom in", () => glide(steps.nearer)),
    key("-", "Zoom out", () => glide(steps.farther)),
    key("0", "The whole map", () => glide(steps.whole)),
    key("f", "Find a rank", () => document.getElementById("find-rank")?.focus()),
  ]);
}
