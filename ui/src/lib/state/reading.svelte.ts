/** One thing being read from the host: what came, why it did not, and since when one waits. */

import { ask, type Bridge, type Request } from "../bridge";
import type { Problem } from "../types/Problem";
import type { Reply } from "../types/Reply";

export class Reading<K extends Reply["reply"]> {
  /** What came last; it stays while it is read anew. */
  reply: Extract<Reply, { reply: K }> | null = $state.raw(null);
  problem: Problem | null = $state(null);
  /** When the asking began; null while nothing is asked for. */
  since: number | null = $state(null);

  #asked = 0;

  constructor(
    readonly bridge: Bridge,
    readonly kind: K,
  ) {}

  /** Asks. A newer asking makes this one void: its answer is dropped, and null comes back. */
  async read(request: Request): Promise<Extract<Reply, { reply: K }> | null> {
    const asked = ++this.#asked;
    this.since = Date.now();
    const reply = await ask(this.bridge, request, this.kind);
    if (asked !== this.#asked) return null;
    this.since = null;
    if (isProblem(reply)) {
      this.problem = reply;
      return null;
    }
    this.problem = null;
    this.reply = reply;
    return reply;
  }

  /** Waits no longer: what comes is dropped. */
  forget(): void {
    this.#asked++;
    this.since = null;
    this.problem = null;
    this.reply = null;
  }
}

function isProblem(reply: Reply): reply is Extract<Reply, { reply: "error" }> {
  return reply.reply === "error";
}
