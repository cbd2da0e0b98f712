/** Which colours has a canvas?  Those of tokens.css as the browser resolves them now: a canvas knows no variables. */

import { type RefObject, useEffect, useState } from "react";

export interface Ink {
  readonly ink: string;
  readonly soft: string;
  readonly paper: string;
  readonly raised: string;
  readonly line: string;
  readonly lineStrong: string;
  readonly focus: string;
  readonly onSeries: string;
  readonly series: readonly string[];
  readonly font: string;
}

function readInk(element: Element): Ink {
  const probe = document.createElement("span");
  element.append(probe);
  const colour = (name: string) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const ink: Ink = {
    ink: colour("ink"),
    soft: colour("ink-soft"),
    paper: colour("paper"),
    raised: colour("paper-raised"),
    line: colour("line"),
    lineStrong: colour("line-strong"),
    focus: colour("focus"),
    onSeries: colour("on-series"),
    series: Array.from({ length: 8 }, (_, index) => colour(`series-${index + 1}`)),
    font: getComputedStyle(probe).fontFamily,
  };
  probe.remove();
  return ink;
}

/** The colours around an element; read again when the system or the reader changes between dark and light. */
export function useInk(ref: RefObject<Element | null>): Ink | undefined {
  const [ink, setInk] = useState<Ink>();
  useEffect(() => {
    const read = () => ref.current && setInk(readInk(ref.current));
    read();
    const system = matchMedia("(prefers-color-scheme: dark)");
    const chosen = new MutationObserver(read);
    chosen.observe(document.documentElement, { attributeFilter: ["data-theme"] });
    system.addEventListener("change", read);
    return () => {
      chosen.disconnect();
      system.removeEventListener("change", read);
    };
  }, [ref]);
  return ink;
}
