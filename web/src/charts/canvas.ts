/** How is a canvas kept drawn?  Again whenever what it shows is another object, sharp on every screen. */

import { type RefObject, useLayoutEffect } from "react";

interface Size {
  readonly width: number;
  readonly height: number;
}

/** `paint` must be stable while nothing changed; its coordinates are CSS px. */
export function useCanvas(
  ref: RefObject<HTMLCanvasElement | null>,
  { width, height }: Size,
  paint: ((context: CanvasRenderingContext2D) => void) | undefined,
): void {
  useLayoutEffect(() => {
    const canvas = ref.current;
    const context = canvas?.getContext("2d");
    if (!canvas || !context || !paint) return;
    const density = Math.min(window.devicePixelRatio || 1, 2);
    const [wide, high] = [Math.round(width * density), Math.round(height * density)];
    // Setting a size clears the canvas and costs an allocation, also when it is the same.
    if (canvas.width !== wide || canvas.height !== high) [canvas.width, canvas.height] = [wide, high];
    context.setTransform(density, 0, 0, density, 0, 0);
    paint(context);
  }, [ref, width, height, paint]);
}
