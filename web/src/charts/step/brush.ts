/** What a canvas is painted with: colours and hatches of the looks in charts/terms.ts, ready for the theme of now. */

import type { Colours } from "../../lib/colours";
import { HATCH_PATHS } from "../Hatches";
import { ACTION_KINDS, AFTER_PIPELINE, type HatchName, type Look, lookOf, TIME_TERMS } from "../terms";

export interface Ink {
  readonly colour: string;
  readonly hatch: CanvasPattern | undefined;
  /** The letter that stands for it where its name has no room. */
  readonly letter: string;
  readonly label: string;
}

export interface Brush {
  readonly kinds: readonly Ink[];
  readonly send: Ink;
  readonly idle: Ink;
  readonly after: Ink;
  readonly paper: string;
  readonly sunken: string;
  readonly ink: string;
  readonly accent: string;
  readonly onMark: string;
  readonly font: string;
}

const TILE_PX = 6;

export function brushOf(kinds: readonly string[], colours: Colours): Brush {
  const paper = colours("--paper");
  const ink = (look: Look, lines = paper): Ink => ({
    colour: colours(look.colour.slice(4, -1)),
    hatch: look.hatch && hatchPattern(look.hatch, lines),
    letter: look.label.charAt(0),
    label: look.label,
  });
  return {
    kinds: kinds.map((kind) => ink(lookOf(ACTION_KINDS, kind))),
    send: ink(lookOf(TIME_TERMS, "pp_send")),
    idle: ink(lookOf(TIME_TERMS, "pp_bubble"), colours("--line-strong")),
    after: ink(AFTER_PIPELINE),
    paper,
    sunken: colours("--paper-sunken"),
    ink: colours("--ink"),
    accent: colours("--accent"),
    onMark: colours("--on-series"),
    font: getComputedStyle(document.body).fontFamily,
  };
}

function hatchPattern(name: HatchName, lines: string): CanvasPattern | undefined {
  const tile = document.createElement("canvas");
  tile.width = TILE_PX;
  tile.height = TILE_PX;
  const context = tile.getContext("2d");
  if (!context) return undefined;
  context.strokeStyle = lines;
  context.globalAlpha = 0.55;
  context.lineWidth = 1;
  context.stroke(new Path2D(HATCH_PATHS[name]));
  return context.createPattern(tile, "repeat") ?? undefined;
}
