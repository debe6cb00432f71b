/** What the person looks for in the journal, and what the host is asked for it. */

import { written } from "../lib/format";
import type { Words } from "../lib/i18n/en";
import type { LogQuery } from "../lib/types/LogQuery";

export interface Filters {
  text: string;
  pid: string;
  call: string;
  resource: string;
  decision: string;
  by: string;
  since: string;
  until: string;
}

export type Field = keyof Filters;
/** The fields beside the search, in the order shown. */
export const fields = ["pid", "call", "resource", "decision", "by", "since", "until"] as const satisfies Field[];
export const nothing: Readonly<Filters> = {
  text: "",
  pid: "",
  call: "",
  resource: "",
  decision: "",
  by: "",
  since: "",
  until: "",
};

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;

/** The query for what is filled in, or the fields that cannot be understood. */
export function queryOf(filters: Filters): { query: LogQuery } | { wrong: Field[] } {
  const filled = (field: Field) => filters[field].trim() || null;
  const pid = filled("pid") === null ? null : Number(/^\d{1,15}$/.exec(filters.pid.trim())?.[0] ?? NaN);
  const since = filled("since") === null ? null : (written(filters.since) ?? NaN);
  const until = filled("until") === null ? null : endOf(filters.until);
  const wrong: Field[] = [];
  if (Number.isNaN(pid)) wrong.push("pid");
  if (Number.isNaN(since)) wrong.push("since");
  if (Number.isNaN(until)) wrong.push("until");
  if (wrong.length > 0) return { wrong };
  return {
    query: {
      pid,
      call: filled("call"),
      resource: filled("resource"),
      decision: filled("decision"),
      by: filled("by"),
      since_ms: since,
      until_ms: until,
      text: filled("text"),
    },
  };
}

/** How many fields beside the search are filled in. */
export function filledIn(filters: Filters): number {
  return fields.filter((field) => filters[field].trim() !== "").length;
}

/** "To" a day is to its end, "to" a minute is to the end of that minute. */
function endOf(text: string): number {
  const at = written(text);
  if (at === null) return NaN;
  return at + (text.includes(":") ? MINUTE : DAY) - 1;
}

/** What kind of row it is, in words; the kernel's own where we have none. */
export function kindOf(kind: string, t: Words): string {
  return t.audit.kinds[kind as keyof typeof t.audit.kinds] ?? kind;
}
