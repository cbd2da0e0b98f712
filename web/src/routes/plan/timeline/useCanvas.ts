import { type RefObject, useLayoutEffect, useRef } from "react";

/** A canvas as sharp as the screen; `paint` runs before the browser shows it, whenever one of `reasons` has changed. */
export function useCanvas(
  width: number,
  height: number,
  paint: (canvas: CanvasRenderingContext2D) => void,
  reasons: readonly unknown[],
): RefObject<HTMLCanvasElement | null> {
  const ref = useRef<HTMLCanvasElement>(null);
  // biome-ignore lint/correctness/useExhaustiveDependencies: the caller names what it paints from
  useLayoutEffect(() => {
    const context = ref.current?.getContext("2d");
    if (!ref.current || !context || width <= 0) return;
    const ratio = window.devicePixelRatio || 1;
    const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
    if (ref.current.width !== across || ref.current.height !== down) {
      ref.current.width = across;
      ref.current.height = down;
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    paint(context);
  }, [width, height, ...reasons]);
  return ref;
}
