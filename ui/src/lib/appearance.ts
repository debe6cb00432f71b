/** Puts the settings' language and theme onto the page. */

import { speak } from "./i18n/index.svelte";
import type { Settings } from "./types/Settings";

export function wear(settings: Pick<Settings, "language" | "theme">): void {
  speak(settings.language);
  const root = document.documentElement;
  if (settings.theme === "light" || settings.theme === "dark") root.dataset["theme"] = settings.theme;
  else delete root.dataset["theme"];
}
