/** Where is something kept between visits?  Browser storage that may be full, forbidden or hold an old form. */

function attempt<T>(step: () => T): T | undefined {
  try {
    return step();
  } catch {
    return undefined;
  }
}

export function remembered(key: string): unknown {
  const text = attempt(() => window.localStorage.getItem(key));
  return text ? attempt(() => JSON.parse(text) as unknown) : undefined;
}

/** False where the browser refused, so that the page can say so. */
export function remember(key: string, value: unknown): boolean {
  return (
    attempt(() => {
      if (value === undefined) window.localStorage.removeItem(key);
      else window.localStorage.setItem(key, JSON.stringify(value));
      return true;
    }) ?? false
  );
}
