import { Link, useMatches } from "@tanstack/react-router";
import styles from "./Shell.module.css";

declare module "@tanstack/react-router" {
  interface StaticDataRouteOption {
    /** What the place is called in the breadcrumbs and in the window's title. */
    crumb?: (params: Record<string, string>) => string;
  }
}

/** Where we are; also the window's title. */
export function Breadcrumbs() {
  const crumbs = useMatches()
    .filter((match) => match.staticData.crumb)
    .map((match) => ({ path: match.pathname, text: match.staticData.crumb?.(match.params) ?? "" }));
  const title = [...crumbs.map((each) => each.text).reverse(), "Meshwright"].join(" \u00b7 ");
  return (
    <nav className={styles.crumbs} aria-label="Breadcrumbs">
      <title>{title}</title>
      <ol>
        {crumbs.map((each, index) => (
          <li key={each.path}>
            {index === crumbs.length - 1 ? (
              <span aria-current="page">{each.text}</span>
            ) : (
              <Link to={each.path}>{each.text}</Link>
            )}
          </li>
        ))}
      </ol>
    </nav>
  );
}
