import { useRouter } from "@tanstack/react-router";
import { type RefObject, useEffect } from "react";

/**
 * Keeps the open link of a bar that scrolls sideways in its middle: on arrival, and when the bar changes its width.
 *
 * `place` says which link of the bar an address opens; it must be the same function at every render.
 */
export function useOpenInSight(bar: RefObject<HTMLElement | null>, place: (path: string) => number): void {
  const router = useRouter();
  useEffect(() => {
    const shown = bar.current;
    if (!shown) return;
    const show = () => {
      const open = shown.querySelectorAll("a")[place(router.latestLocation.pathname)];
      // Only the bar moves: scrollIntoView would move the page too.
      if (open) shown.scrollLeft = open.offsetLeft - (shown.clientWidth - open.offsetWidth) / 2;
    };
    const resized = new ResizeObserver(show);
    resized.observe(shown);
    // After the router, which puts the bar back to where it stood on the page before, now or in the next frame.
    const left = router.subscribe("onRendered", () => {
      show();
      requestAnimationFrame(() => requestAnimationFrame(show));
    });
    return () => {
      resized.disconnect();
      left();
    };
  }, [bar, place, router]);
}
