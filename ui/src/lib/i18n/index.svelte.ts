/** The words of the page, in the language chosen or that of the system. */

import { en, type Words } from "./en";
import { zh } from "./zh";

export type { Words };
export type Language = "en" | "zh";

export const languages: Record<Language, Words> = { en, zh };

const chosen = $state<{ language: Language }>({ language: fromSystem() });

/** The words; reading them inside a component follows a change of language. */
export function words(): Words {
  return languages[chosen.language];
}

/** Takes a setting: `system`, `en` or `zh`. */
export function speak(setting: string): void {
  chosen.language = setting === "en" || setting === "zh" ? setting : fromSystem();
  document.documentElement.lang = chosen.language === "zh" ? "zh-Hans" : "en";
}

function fromSystem(): Language {
  return navigator.language.toLowerCase().startsWith("zh") ? "zh" : "en";
}
