import type { ButtonHTMLAttributes } from "react";
import styles from "./Button.module.css";

interface Props extends ButtonHTMLAttributes<HTMLButtonElement> {
  look?: "plain" | "primary" | "quiet";
}

/** Classes of something that looks like a button: for links too. */
export function buttonClass(look: Props["look"] = "plain"): string {
  return look === "plain" ? `${styles.button}` : `${styles.button} ${styles[look]}`;
}

/** Something that happens on a press; never a link. */
export function Button({ look = "plain", type = "button", className, ...rest }: Props) {
  return <button type={type} className={`${buttonClass(look)} ${className ?? ""}`} {...rest} />;
}
