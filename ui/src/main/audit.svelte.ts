/** The journal as the person searches it: pages of rows, the chain behind one, a check, an export. */

import { type Bridge, isProblem } from "../lib/bridge";
import { Reading } from "../lib/state/reading.svelte";
import type { ExportForm } from "../lib/types/ExportForm";
import type { LogRow } from "../lib/types/LogRow";
import type { Problem } from "../lib/types/Problem";
import { type Field, type Filters, nothing, queryOf } from "./filters";

/** Rows a page, and rows kept at most: beyond that a search is narrowed, not scrolled. */
export const PAGE = 200;
export const MOST = 10_000;
/** How long typing must rest before the journal is asked. */
const REST_MS = 250;

export type Export =
  | { state: "going"; lines: number }
  | { state: "done"; lines: number; file: string }
  | { state: "stopped" }
  | { state: "failed"; problem: Problem };

export class Audit {
  filters: Filters = $state({ ...nothing });
  /** Fields that cannot be understood; the rows shown are those from before. */
  wrong: Field[] = $state([]);
  /** Newest first. */
  rows: LogRow[] = $state.raw([]);
  /** There are earlier rows than those read. */
  more = $state(false);
  chosen: LogRow | null = $state.raw(null);
  exported: Export | null = $state.raw(null);

  readonly log;
  readonly chain;
  readonly verified;

  #resting: ReturnType<typeof setTimeout> | undefined;

  constructor(readonly bridge: Bridge) {
    this.log = new Reading(bridge, "log");
    this.chain = new Reading(bridge, "chain");
    this.verified = new Reading(bridge, "verified");
  }

  set(field: Field, value: string): void {
    this.filters[field] = value;
    clearTimeout(this.#resting);
    this.#resting = setTimeout(() => void this.search(), REST_MS);
  }

  clear(): Promise<void> {
    this.filters = { ...nothing };
    return this.search();
  }

  /** Reads the first page of what the filters let through. */
  async search(): Promise<void> {
    clearTimeout(this.#resting);
    const asked = queryOf(this.filters);
    this.wrong = "wrong" in asked ? asked.wrong : [];
    if ("wrong" in asked) return;
    const reply = await this.log.read({ command: "log", ...asked.query, limit: PAGE });
    if (reply === null) return;
    this.rows = reply.rows;
    this.more = reply.rows.length >= PAGE;
  }

  /** Reads the page before the rows shown. */
  async earlier(): Promise<void> {
    const asked = queryOf(this.filters);
    const before = this.rows.at(-1)?.id;
    if ("wrong" in asked || before === undefined || this.rows.length >= MOST || this.log.since !== null) return;
    const reply = await this.log.read({ command: "log", ...asked.query, before, limit: PAGE });
    if (reply === null) return;
    this.rows = [...this.rows, ...reply.rows];
    this.more = reply.rows.length >= PAGE && this.rows.length < MOST;
  }

  /** Opens a row, with the chain behind the call it tells of. */
  async open(row: LogRow): Promise<void> {
    const { pid, seq } = row;
    const same = this.chosen?.pid === pid && this.chosen.seq === seq;
    this.chosen = row;
    if (same) return;
    this.chain.forget();
    if (seq !== null) await this.chain.read({ command: "chain", pid, seq });
  }

  /** Finds a row by its number, whatever the filters. */
  async find(id: number): Promise<void> {
    this.filters = { ...nothing };
    this.wrong = [];
    const asked = queryOf(this.filters);
    if ("wrong" in asked) return;
    const reply = await this.log.read({ command: "log", ...asked.query, before: id + 1, limit: PAGE });
    if (reply === null) return;
    this.rows = reply.rows;
    this.more = reply.rows.length >= PAGE;
    const row = reply.rows.find((other) => other.id === id);
    if (row) await this.open(row);
  }

  async verify(): Promise<void> {
    this.verified.reply = null;
    await this.verified.read({ command: "log_verify" });
  }

  /** Has the whole journal written to a file; how far it is is told on the way. */
  async export(form: ExportForm): Promise<void> {
    if (this.exported?.state === "going") return;
    this.exported = { state: "going", lines: 0 };
    const told = this.bridge.on("export-progress", ({ lines }) => {
      if (this.exported?.state === "going") this.exported = { state: "going", lines };
    });
    const ended = await this.bridge.exportJournal(form);
    void told.then((unhear) => unhear());
    if (isProblem(ended)) this.exported = { state: "failed", problem: ended };
    else if (ended.file === null) this.exported = { state: "stopped" };
    else this.exported = { state: "done", lines: ended.lines, file: ended.file };
  }
}
