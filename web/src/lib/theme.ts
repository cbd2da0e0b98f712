/** Dark or light?  The system's choice, until the reader makes one, which is remembered. */

import { remember, remembered } from "./storage";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];
const KEY = "meshwright.theme";

export function chosenTheme(): Theme {
  return THEMES.find((each) => each === remembered(KEY)) ?? "system";
}

export function applyTheme(theme: Theme): void {
  document.documentElement.dataset.theme = theme;
}

export function chooseTheme(theme: Theme): void {
  remember(KEY, theme === "system" ? undefined : theme);
  applyTheme(theme);
}
