/**
 * What was typed into "why not mine?"?  Kept in this browser, with what the address asked at that time: a reload loses
 * nothing, and a link that asks something else shows what it asks.
 */

import { useEffect, useRef, useState } from "react";
import { remember, remembered } from "../../../lib/storage";

interface Kept {
  readonly text: string;
  readonly asked: string;
}

/** The text to begin with: the kept one if it belongs to this address. */
export function textToShow(kept: unknown, asked: string): string {
  if (typeof kept !== "object" || kept === null) return asked;
  const draft = kept as Partial<Kept>;
  return typeof draft.text === "string" && draft.asked === asked ? draft.text : asked;
}

export function useDraftText(planId: string, asked: string) {
  const key = `meshwright.why-not.${planId}`;
  const [text, setText] = useState(() => textToShow(remembered(key), asked));
  const shownFor = useRef(asked);
  useEffect(() => {
    if (shownFor.current === asked) return;
    shownFor.current = asked;
    setText(textToShow(remembered(key), asked));
  }, [asked, key]);
  return {
    text,
    write: (next: string) => {
      setText(next);
      remember(key, { text: next, asked } satisfies Kept);
    },
    /** The address will ask for `pins`, which is what the text says. */
    sent: (pins: string) => {
      shownFor.current = pins;
      remember(key, { text, asked: pins } satisfies Kept);
    },
  };
}
