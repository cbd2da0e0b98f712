import { searchReader, text } from "../lib/search";

/** Which models are listed, and the one that is looked at. */
export const readModelsSearch = searchReader({
  name: text(),
  model: text(),
});

export type ModelsSearch = ReturnType<typeof readModelsSearch.full>;
