/** Where the person is in the window: kept when they look elsewhere and come back. */

import type { Place } from "./place";
import { type Links, readLinks } from "./threads";

export class Desk {
  place: Place = $state("chat");
  /** The chat shown, by any of its runs; null is a new one. */
  chat: number | null = $state(null);
  draft = $state("");
  pid: number | null = $state(null);
  approval: number | null = $state(null);
  row: number | null = $state(null);
  searches: Record<"chat" | "agents" | "approvals" | "journal", string> = $state({
    chat: "",
    agents: "",
    approvals: "",
    journal: "",
  });
  links: Links = $state(readLinks(localStorage));

  go(place: Place): void {
    this.place = place;
  }

  showChat(run: number | null): void {
    this.chat = run;
    this.place = "chat";
  }

  showAgent(pid: number): void {
    this.pid = pid;
    this.searches.agents = "";
    this.place = "agents";
  }
}

/** Whether every word of a search is somewhere in the text. */
export function matches(text: string, search: string): boolean {
  const low = text.toLowerCase();
  return search
    .toLowerCase()
    .split(/\s+/)
    .every((word) => low.includes(word));
}
