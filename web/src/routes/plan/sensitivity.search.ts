import { flag, oneOf, searchReader, text } from "../../lib/search";

export const REACHES = ["10,20", "10", "20", "50"] as const;

/** By how many percent inputs are off, the lever looked at, and whether the plan is searched again under each change. */
export const readSensitivitySearch = searchReader({
  by: oneOf(REACHES, "10,20"),
  lever: text("", 40),
  flips: flag(false),
});
