/**
 * When an answer to an approval counts.
 *
 * A dialog comes up while its reader types or clicks elsewhere, so it takes no key and no approval
 * until it has stood unchanged for half a second. Enter by itself never approves.
 */

/** How long an approval must have stood before it can be approved, in milliseconds. */
export const STAND_MS = 500;

export type KeyAnswer = "approve" | "deny" | null;

export class Guard {
  #shown = "";
  #since = Number.POSITIVE_INFINITY;

  /** Tells what is shown now; a change of it begins the wait anew. */
  show(what: string, now: number): void {
    if (what === this.#shown) return;
    this.#shown = what;
    this.#since = now;
  }

  /** Begins the wait anew: the dialog has come up again. */
  restart(now: number): void {
    this.#since = now;
  }

  /** Milliseconds until `what` may be approved; 0 when it may. */
  wait(what: string, now: number): number {
    if (what !== this.#shown) return STAND_MS;
    return Math.max(0, STAND_MS - (now - this.#since));
  }
}

/** The answer a key press stands for, before the guard is asked. */
export function keyAnswer(event: KeyboardEvent): KeyAnswer {
  if (event.repeat || isComposing(event)) return null;
  if (event.key === "Escape" && !hasModifier(event)) return "deny";
  if (event.key === "Enter" && event.ctrlKey && !event.altKey && !event.metaKey && !event.shiftKey) {
    return "approve";
  }
  return null;
}

/** Whether a key press belongs to an input method; 229 is how WebKit marks the one that ends it. */
export function isComposing(event: KeyboardEvent): boolean {
  return event.isComposing || event.keyCode === 229;
}

function hasModifier(event: KeyboardEvent): boolean {
  return event.ctrlKey || event.altKey || event.metaKey || event.shiftKey;
}
