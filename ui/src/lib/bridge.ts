/**
 * The only door between the pages and the program around them.
 *
 * Pages talk to a [`Bridge`]; the desktop's is made of Tauri's `invoke` and `listen`, and tests and
 * a plain browser get the one in `bridge.fake.ts`. No other file imports `@tauri-apps/api`.
 */

import { invoke, isTauri } from "@tauri-apps/api/core";
import { listen } from "@tauri-apps/api/event";

import type { Command } from "./types/Command";
import type { Decide } from "./types/Decide";
import type { Event } from "./types/Event";
import type { ExportForm } from "./types/ExportForm";
import type { Problem } from "./types/Problem";
import type { Reply } from "./types/Reply";

/** What any page may ask. A decision is not among them: it has a command of its own. */
export type Request = Exclude<Command, { command: "decide" }>;

/** What the program tells the pages, by name. */
export interface Signals {
  "host-event": Event;
  "launcher-shown": null;
  "launcher-hidden": null;
  "main-open": { pid: number | null };
  "approval-open": { id: number | null };
  "export-progress": { lines: number };
}

/** How an export of the journal ended. */
export interface Exported {
  /** The file's path; null where it was stopped. */
  file: string | null;
  lines: number;
}

/** Everything a page can do outside itself. A failure is a reply, never a rejection. */
export interface Bridge {
  request(request: Request): Promise<Reply>;
  /** Answers an approval; the shell allows it from the approval window alone. */
  decide(decision: Decide): Promise<Reply>;
  launcherHeight(height: number): Promise<void>;
  hideLauncher(): Promise<void>;
  openMain(pid: number | null): Promise<void>;
  openApproval(id: number | null): Promise<void>;
  closeApproval(): Promise<void>;
  /** Writes the whole journal to a new file in the person's folder for downloads; `export-progress` tells how far it is. */
  exportJournal(form: ExportForm): Promise<Exported | Problem>;
  /** Stops the export that runs; nothing is left of it. */
  stopExport(): Promise<void>;
  /** Hears a signal until the returned function is called. */
  on<K extends keyof Signals>(signal: K, heard: (payload: Signals[K]) => void): Promise<() => void>;
}

/** The bridge of the page this runs in. */
export async function connect(): Promise<Bridge> {
  if (isTauri()) return tauri;
  if (import.meta.env.DEV) return (await import("./fake/acting")).believable();
  throw new Error("this page works only inside Steward");
}

type ReplyOf<K extends Reply["reply"]> = Extract<Reply, { reply: K }>;

/** Asks for one kind of reply; anything else comes back as an error in words. */
export async function ask<K extends Reply["reply"]>(
  bridge: Bridge,
  request: Request,
  kind: K,
): Promise<ReplyOf<K> | ReplyOf<"error">> {
  const reply = await bridge.request(request);
  if (isReply(reply, kind) || isReply(reply, "error")) return reply;
  return failure(`the program answered \`${reply.reply}\` to \`${request.command}\``);
}

/** Words for whatever a rejected call carried. */
export function problemOf(thrown: unknown): Problem {
  if (isProblem(thrown)) return thrown;
  const message = thrown instanceof Error ? thrown.message : String(thrown);
  return { code: "shell", message: message.slice(0, 1000), hint: null };
}

const tauri: Bridge = {
  request: (command) => reply(invoke<Reply>("request", { command })),
  decide: (decision) => reply(invoke<Reply>("decide", { decision })),
  launcherHeight: (height) => invoke("launcher_height", { height }),
  hideLauncher: () => invoke("launcher_hide"),
  openMain: (pid) => invoke("open_main", { pid }),
  openApproval: (id) => invoke("open_approval", { id }),
  closeApproval: () => invoke("approval_close"),
  exportJournal: async (form) => {
    try {
      return await invoke<Exported>("export_journal", { form });
    } catch (thrown) {
      return problemOf(thrown);
    }
  },
  stopExport: () => invoke("export_stop"),
  on: (signal, heard) => listen<Signals[typeof signal]>(signal, (event) => heard(event.payload)),
};

async function reply(call: Promise<Reply>): Promise<Reply> {
  try {
    return await call;
  } catch (thrown) {
    return { reply: "error", ...problemOf(thrown) };
  }
}

function failure(message: string): ReplyOf<"error"> {
  return { reply: "error", code: "unexpected", message, hint: null };
}

function isReply<K extends Reply["reply"]>(reply: Reply, kind: K): reply is ReplyOf<K> {
  return reply.reply === kind;
}

export function isProblem(value: unknown): value is Problem {
  return typeof value === "object" && value !== null && "code" in value && "message" in value;
}
