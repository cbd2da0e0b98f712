/** Which colours does a token mean now?  For canvases, which do not know CSS: again whenever the theme changes. */

import { useEffect, useState } from "react";

/** Colours that a canvas understands, by token: `colours("--ink")`. */
export type Colours = (token: string) => string;

function colours(): Colours {
  const found = new Map<string, string>();
  return (token) => {
    const known = found.get(token);
    if (known) return known;
    const probe = document.createElement("span");
    probe.style.color = `var(${token})`;
    document.body.append(probe);
    const colour = getComputedStyle(probe).color;
    probe.remove();
    found.set(token, colour);
    return colour;
  };
}

export function useColours(): Colours {
  const [current, setCurrent] = useState<Colours>(colours);
  useEffect(() => {
    const renew = () => setCurrent(colours);
    const system = window.matchMedia("(prefers-color-scheme: dark)");
    const choice = new MutationObserver(renew);
    choice.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    system.addEventListener("change", renew);
    return () => {
      choice.disconnect();
      system.removeEventListener("change", renew);
    };
  }, []);
  return current;
}
