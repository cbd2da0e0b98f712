import { backendOfOldAddress } from "../../lib/backends";
import { searchReader, text } from "../../lib/search";

/** For which back-end ("" = the plan's own) and launcher, and which file is open ("" = the first). */
export const readFilesSearch = searchReader(
  {
    backend: text(),
    launcher: text("torchrun"),
    file: text(),
  },
  { names: ["target", "version"], read: (raw) => ({ backend: backendOfOldAddress(raw) }) },
);
