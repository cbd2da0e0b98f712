import { useState } from "react";
import { chooseTheme, chosenTheme, THEMES, type Theme } from "../lib/theme";
import styles from "./ThemeSwitch.module.css";

const LABELS: Record<Theme, string> = { system: "System theme", light: "Light theme", dark: "Dark theme" };

/** Dark, light, or as the system says. */
export function ThemeSwitch() {
  const [theme, setTheme] = useState(chosenTheme);
  return (
    <select
      className={styles.select}
      aria-label="Theme"
      value={theme}
      onChange={(event) => {
        const chosen = THEMES.find((each) => each === event.target.value) ?? "system";
        chooseTheme(chosen);
        setTheme(chosen);
      }}
    >
      {THEMES.map((each) => (
        <option key={each} value={each}>
          {LABELS[each]}
        </option>
      ))}
    </select>
  );
}
