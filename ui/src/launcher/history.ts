/** Earlier requests, newest first, as kept between starts. */

const KEY = "steward.history";
export const MAX_REQUESTS = 100;
export const MAX_LENGTH = 4000;

export class History {
  #requests: string[];
  /** How far back the walk has gone; -1 is the draft. */
  #at = -1;
  #draft = "";

  constructor(private readonly store: Pick<Storage, "getItem" | "setItem">) {
    this.#requests = read(store);
  }

  add(request: string): void {
    this.#requests = [request, ...this.#requests.filter((other) => other !== request)].slice(0, MAX_REQUESTS);
    this.rest();
    try {
      this.store.setItem(KEY, JSON.stringify(this.#requests));
    } catch {
      // A full or forbidden store costs the history, not the request.
    }
  }

  /** The request before the one shown, or null at the oldest. */
  back(shown: string): string | null {
    if (this.#at < 0) this.#draft = shown;
    let at = this.#at + 1;
    if (this.#at < 0 && this.#requests[at] === shown) at += 1;
    const request = this.#requests[at];
    if (request === undefined) return null;
    this.#at = at;
    return request;
  }

  /** The request after the one shown, at last the draft; null where the walk has not begun. */
  forth(): string | null {
    if (this.#at < 0) return null;
    this.#at -= 1;
    return this.#at < 0 ? this.#draft : (this.#requests[this.#at] ?? null);
  }

  /** Ends the walk: the next one begins at the newest. */
  rest(): void {
    this.#at = -1;
  }
}

function read(store: Pick<Storage, "getItem">): string[] {
  try {
    const kept: unknown = JSON.parse(store.getItem(KEY) ?? "[]");
    if (!Array.isArray(kept)) return [];
    return kept
      .filter((request): request is string => typeof request === "string" && request.length <= MAX_LENGTH)
      .slice(0, MAX_REQUESTS);
  } catch {
    return [];
  }
}
