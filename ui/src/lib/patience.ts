/** Why nothing is to be seen yet, in a sentence. */

import type { Words } from "./i18n/en";
import type { ModelState } from "./state/world";
import type { ProcessView } from "./types/ProcessView";
import type { StepView } from "./types/StepView";

export function reasonToWait(
  process: ProcessView | undefined,
  lastStep: StepView | undefined,
  model: ModelState | null,
  t: Words,
): string {
  if (process === undefined) return t.wait.host;
  if (model !== null && !model.ready) return t.wait.model;
  if (lastStep?.state === "running" && !lastStep.name.startsWith("llm.")) return t.wait.tool;
  switch (process.state) {
    case "created":
    case "runnable":
      return t.wait.turn;
    case "waiting_tool":
      return t.wait.tool;
    case "waiting_event":
      return t.wait.event;
    default:
      return t.wait.thinking;
  }
}
