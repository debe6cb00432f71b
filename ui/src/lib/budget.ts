/** What a process has used of what it may use, in words and as a part of the whole. */

import { count, duration } from "./format";
import type { Words } from "./i18n/en";
import type { BudgetView } from "./types/BudgetView";
import type { ProcessView } from "./types/ProcessView";

export type Kind = "tokens" | "calls" | "seconds" | "money" | "children";

export interface Share {
  kind: Kind;
  used: number;
  limit: number;
  /** `1,200 of 4,000 tokens` */
  words: string;
}

const MICROS = 1_000_000;

/** Everything that has a limit, tokens first. */
export function shares({ limits, used }: BudgetView, t: Words): Share[] {
  const plain = (n: number) => count(n, t.locale);
  const money = (micros: number) => new Intl.NumberFormat(t.locale, { minimumFractionDigits: 2 }).format(micros / MICROS);
  const time = (seconds: number) => duration(seconds * 1000, t.locale);
  const rows: [kind: Kind, used: number, limit: number | null, say: (n: number) => string][] = [
    ["tokens", used.tokens, limits.tokens, plain],
    ["calls", used.calls, limits.calls, plain],
    ["seconds", used.seconds, limits.seconds, time],
    ["money", used.money_micros, limits.money_micros, money],
    ["children", used.children, limits.children, plain],
  ];
  return rows.flatMap(([kind, used, limit, say]) =>
    limit === null ? [] : [{ kind, used, limit, words: t.budget[kind](say(used), say(limit)) }],
  );
}

/** Tokens in a few words: of how many, or that there is no limit. */
export function tokensOf(process: ProcessView, t: Words): string {
  const tokens = shares(process.budget, t).find(({ kind }) => kind === "tokens");
  return tokens?.words ?? t.budget.free(count(process.tokens, t.locale), process.tokens === 1);
}

/** How much of it is used, from 0 to 1. A limit of nothing is used up. */
export function part({ used, limit }: Share): number {
  return limit <= 0 ? 1 : Math.min(1, used / limit);
}
