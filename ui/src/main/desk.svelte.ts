/** Where the person is in the window: kept when they look elsewhere and come back. */

import type { Audit } from "./audit.svelte";
import type { Place } from "./place";
import { type Links, readLinks } from "./threads";

export class Desk {
  place: Place = $state("chat");
  /** The chat shown, by any of its runs; null is a new one. */
  chat: number | null = $state(null);
  draft = $state("");
  pid: number | null = $state(null);
  /** The row of the tree of agents, where it is not that of `pid`. */
  branch: string | null = $state(null);
  /** What was opened and closed in the tree of agents. */
  opened: Record<string, boolean> = $state({});
  part: "steps" | "capabilities" | "checkpoints" | "objects" = $state("steps");
  approvals: "waiting" | "standing" = $state("waiting");
  approval: number | null = $state(null);
  grant: number | null = $state(null);
  /** The search and the checks of the journal: begun once, they go on while one looks elsewhere. */
  audit: Audit | null = $state(null);
  searches: Record<"chat" | "agents" | "approvals" | "standing", string> = $state({
    chat: "",
    agents: "",
    approvals: "",
    standing: "",
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
    this.branch = null;
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
