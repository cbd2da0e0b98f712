/** Where do the pieces of a bar lie?  One after the other, each as long as its share; gaps of 1 px between them. */

import type { Look } from "./terms";

export interface Piece {
  readonly name: string;
  readonly value: number;
  readonly look: Look;
}

export interface Placed {
  readonly piece: Piece;
  readonly x: number;
  readonly width: number;
}

const GAP_PX = 1;

/** Pieces with a length; `total` = what the whole width means, by default their sum. */
export function stackPieces(pieces: readonly Piece[], width: number, total?: number): readonly Placed[] {
  const shown = pieces.filter((each) => each.value > 0);
  const sum = shown.reduce((before, each) => before + each.value, 0);
  const whole = total ?? sum;
  // A share needs no library of scales, which screens with bars alone would load for it.
  const scale = (value: number) => (value / whole) * width;
  let start = 0;
  return shown.map((piece) => {
    const x = scale(start);
    start += piece.value;
    const end = scale(start);
    return { piece, x, width: Math.max(0.5, end - x - GAP_PX) };
  });
}
