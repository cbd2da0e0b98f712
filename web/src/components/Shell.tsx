import { Link, Outlet, useNavigate, useRouterState } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useRef, useState } from "react";
import { listenForKeys, useKeys } from "../lib/keys";
import { useOpenInSight } from "../lib/openInSight";
import { useSession } from "../lib/session";
import { Breadcrumbs } from "./Breadcrumbs";
import { Button } from "./Button";
import { ErrorBoundary } from "./ErrorBoundary";
import { KeyList } from "./KeyList";
import styles from "./Shell.module.css";
import { ThemeSwitch } from "./ThemeSwitch";

/** Most services ask nobody for a key. */
const KeyDialog = lazy(async () => ({ default: (await import("./KeyDialog")).KeyDialog }));

const SCREENS = [
  { to: "/", label: "New plan", keys: "g n" },
  { to: "/plans", label: "Plans", keys: "g p" },
  { to: "/jobs", label: "Jobs", keys: "g j" },
  { to: "/compare", label: "Compare clusters", keys: "g c" },
  { to: "/fleet", label: "Share a fleet", keys: "g f" },
  { to: "/models", label: "Models", keys: "g m" },
  { to: "/clusters", label: "Clusters & profiles", keys: "g l" },
  { to: "/accuracy", label: "Accuracy", keys: "g a" },
] as const;

/** What is around every screen: navigation, where we are, theme, keys, and the key that the API asks for. */
export function Shell() {
  const navigate = useNavigate();
  const path = useRouterState({ select: (state) => state.location.pathname });
  const [keysShown, setKeysShown] = useState(false);
  const { refused } = useSession();
  useEffect(listenForKeys, []);
  useKeys([
    ...SCREENS.map((each) => ({
      keys: each.keys,
      does: each.label,
      group: "Go to",
      run: () => void navigate({ to: each.to }),
    })),
    { keys: "?", does: "List the keys", group: "Everywhere", run: () => setKeysShown(true) },
  ]);
  const main = useFocusOnArrival(path);
  const links = useRef<HTMLUListElement>(null);
  useOpenInSight(links, placeOf);
  return (
    <div className={styles.shell}>
      <a className={styles.skip} href="#main">
        Skip to content
      </a>
      <nav className={styles.nav} aria-label="Screens">
        <div>
          <Link to="/" className={styles.name}>
            <Mark /> Meshwright
          </Link>
          <ul ref={links} className={styles.links}>
            {SCREENS.map((each) => (
              <li key={each.to}>
                <Link to={each.to} activeOptions={{ exact: each.to === "/", includeSearch: false }}>
                  {each.label}
                </Link>
              </li>
            ))}
          </ul>
        </div>
      </nav>
      <header className={styles.bar}>
        <Breadcrumbs />
        <div className={styles.tools}>
          <ThemeSwitch />
          <Button look="quiet" aria-label="List the keys" onClick={() => setKeysShown(true)}>
            <kbd>?</kbd>
          </Button>
        </div>
      </header>
      <main id="main" ref={main} className={styles.main} tabIndex={-1}>
        <ErrorBoundary resetOn={path}>
          <Outlet />
        </ErrorBoundary>
      </main>
      <KeyList shown={keysShown} onClose={() => setKeysShown(false)} />
      {refused && (
        <Suspense fallback={null}>
          <KeyDialog />
        </Suspense>
      )}
    </div>
  );
}

/** The screen of an address: /plans/<plan>/memory is of /plans. */
function placeOf(path: string): number {
  return SCREENS.findIndex((each) => each.to === `/${path.split("/")[1] ?? ""}`);
}

/** Another screen begins at its content, also for those who read with keys or ears; tabs of one plan stay where they are. */
function useFocusOnArrival(path: string) {
  const main = useRef<HTMLElement>(null);
  const screen = path.split("/").slice(0, 3).join("/");
  const before = useRef(screen);
  useEffect(() => {
    if (before.current !== screen) main.current?.focus({ preventScroll: true });
    before.current = screen;
  }, [screen]);
  return main;
}

function Mark() {
  return (
    <svg width="18" height="18" viewBox="0 0 16 16" aria-hidden="true">
      <path
        d="M2.5 13V3.5L8 8.4l5.5-4.9V13"
        fill="none"
        stroke="var(--accent)"
        strokeWidth="2"
        strokeLinejoin="round"
        strokeLinecap="round"
      />
    </svg>
  );
}
