/** Fingers on a page, as the browser itself is told of them: touches that scroll, pinch, and are cancelled. */

import type { Page } from "@playwright/test";

export type Finger = readonly [x: number, y: number];

const STEPS = 8;

/** Each finger goes straight from its first place to its second one; all are put down one after another and lifted together. */
export async function slide(
  page: Page,
  fingers: readonly (readonly [from: Finger, to: Finger])[],
): Promise<void> {
  const session = await page.context().newCDPSession(page);
  const points = (part: number, count = fingers.length) =>
    fingers.slice(0, count).map(([[x, y], [toX, toY]], id) => ({
      id,
      x: Math.round(x + (toX - x) * part),
      y: Math.round(y + (toY - y) * part),
    }));
  for (let count = 1; count <= fingers.length; count++)
    await session.send("Input.dispatchTouchEvent", { type: "touchStart", touchPoints: points(0, count) });
  for (let step = 1; step <= STEPS; step++)
    await session.send("Input.dispatchTouchEvent", { type: "touchMove", touchPoints: points(step / STEPS) });
  await session.send("Input.dispatchTouchEvent", { type: "touchEnd", touchPoints: [] });
  await session.detach();
}

export const scrolled = (page: Page): Promise<number> => page.evaluate(() => window.scrollY);

/** Where the page is scrolled to once it has come to rest: the same place for twenty frames. */
export function atRest(page: Page): Promise<number> {
  return page.evaluate(
    () =>
      new Promise<number>((resolve) => {
        let [place, frames] = [scrollY, 0];
        const look = () => {
          frames = scrollY === place ? frames + 1 : 0;
          place = scrollY;
          if (frames < 20) requestAnimationFrame(look);
          else resolve(place);
        };
        requestAnimationFrame(look);
      }),
  );
}
