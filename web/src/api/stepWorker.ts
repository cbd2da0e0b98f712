/** Reads the answer of `/step` beside the page, which stays free to draw: 50,000 actions are megabytes of JSON. */

import { columnsOf, type StepView } from "../charts/step/columns";

self.onmessage = (message: MessageEvent<ArrayBuffer>) => {
  const view = JSON.parse(new TextDecoder().decode(message.data)) as StepView;
  self.postMessage(columnsOf(view));
};
