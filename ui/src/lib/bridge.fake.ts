/**
 * A bridge to a made-up house: what a plain browser shows while the interface is worked on, and
 * what tests talk to. It is not part of the program.
 */

import type { Bridge, Exported, Request, Signals } from "./bridge";
import type { Decide } from "./types/Decide";
import type { Event } from "./types/Event";
import type { ExportForm } from "./types/ExportForm";
import type { Problem } from "./types/Problem";
import type { ProcessView } from "./types/ProcessView";
import type { Reply } from "./types/Reply";
import type { SignalView } from "./types/SignalView";
import { aCheckpoint, type FakeHouse, detailOf, processRow } from "./fake/data";
import { chainOf, rowsOf } from "./fake/journal";
import { checkpointDetail, explanation } from "./fake/rights";

export type { FakeHouse } from "./fake/data";
export {
  aBudget,
  aCapability,
  aCheckpoint,
  aGrant,
  anApproval,
  aProcess,
  aRow,
  emptyHouse,
} from "./fake/data";

type Heard = { [K in keyof Signals]?: ((payload: Signals[K]) => void)[] };

export class FakeBridge implements Bridge {
  /** Every call made, by name, with what it carried. */
  readonly calls: [name: string, carried: unknown][] = [];
  /** Replies that stand in for the house's own, by command. */
  readonly replies = new Map<Request["command"] | "decide", Reply>();
  readonly house: FakeHouse;
  readonly #heard: Heard = {};

  constructor(house: FakeHouse) {
    this.house = structuredClone(house);
  }

  async request(request: Request): Promise<Reply> {
    this.calls.push([request.command, request]);
    return this.replies.get(request.command) ?? this.reply(request);
  }

  async decide(decision: Decide): Promise<Reply> {
    this.calls.push(["decide", decision]);
    const instead = this.replies.get("decide");
    if (instead) return instead;
    const { id, answer } = decision;
    const counted = this.house.approvals.some((approval) => approval.id === id);
    this.house.approvals = this.house.approvals.filter((approval) => approval.id !== id);
    if (counted) this.tell({ type: "decided", id, approved: answer !== "no", by: "window" });
    return { reply: "decided", counted, note: counted ? null : "it was answered in the terminal" };
  }

  async launcherHeight(height: number) {
    this.calls.push(["launcher_height", height]);
  }

  async hideLauncher() {
    this.calls.push(["launcher_hide", null]);
    this.signal("launcher-hidden", null);
  }

  async openMain(pid: number | null) {
    this.calls.push(["open_main", pid]);
  }

  async openApproval(id: number | null) {
    this.calls.push(["open_approval", id]);
  }

  async closeApproval() {
    this.calls.push(["approval_close", null]);
  }

  async exportJournal(form: ExportForm): Promise<Exported | Problem> {
    this.calls.push(["export_journal", form]);
    const lines = this.house.log.length;
    this.signal("export-progress", { lines });
    return { file: `/home/mei/Downloads/steward-journal.${form === "otel" ? "otel.jsonl" : "jsonl"}`, lines };
  }

  async stopExport() {
    this.calls.push(["export_stop", null]);
  }

  async on<K extends keyof Signals>(signal: K, heard: (payload: Signals[K]) => void) {
    const all: ((payload: Signals[K]) => void)[] = (this.#heard[signal] ??= []);
    all.push(heard);
    return () => void all.splice(all.indexOf(heard), 1);
  }

  signal<K extends keyof Signals>(signal: K, payload: Signals[K]): void {
    for (const heard of this.#heard[signal] ?? []) heard(payload);
  }

  tell(event: Event): void {
    this.signal("host-event", event);
  }

  /** How often a call was made. */
  count(name: string): number {
    return this.calls.filter(([called]) => called === name).length;
  }

  protected reply(request: Request): Reply {
    const { house } = this;
    switch (request.command) {
      case "submit":
        return { reply: "started", ...this.begin(request.request) };
      case "processes":
        return { reply: "processes", processes: structuredClone(house.processes) };
      case "process": {
        const process = house.processes.find(({ pid }) => pid === request.pid);
        if (!process) {
          return notFound(`there is no process \`${request.pid}\``);
        }
        return { reply: "process", ...structuredClone(detailOf(house, process)) };
      }
      case "approvals":
        return { reply: "approvals", approvals: structuredClone(house.approvals) };
      case "questions":
        return { reply: "questions", questions: structuredClone(house.questions) };
      case "answer_question":
        house.questions = house.questions.filter(({ id }) => id !== request.id);
        return { reply: "decided", counted: true, note: null };
      case "signal":
        this.heed(request.pid, request.signal);
        return { reply: "done" };
      case "send_message":
      case "revoke_capability":
        return { reply: "done" };
      case "grants":
        return { reply: "grants", grants: structuredClone(house.grants) };
      case "revoke_grant":
        for (const grant of house.grants) if (grant.id === request.id) grant.revoked_ms = Date.now();
        return { reply: "done" };
      case "capabilities":
        return { reply: "capabilities", capabilities: house.capabilities.filter(({ pid }) => pid === request.pid) };
      case "explain":
        return { reply: "explanation", ...explanation(request.pid, request.what) };
      case "checkpoints":
        return { reply: "checkpoints", checkpoints: house.checkpoints.filter(({ pid }) => pid === request.pid) };
      case "create_checkpoint": {
        const made = aCheckpoint({ id: house.checkpoints.length + 10, pid: request.pid, label: request.label });
        house.checkpoints.unshift(made);
        return { reply: "checkpoint", ...checkpointDetail(made) };
      }
      case "checkpoint":
      case "restore_checkpoint": {
        const found = house.checkpoints.find(({ id }) => id === request.id);
        if (!found) return notFound(`there is no checkpoint \`${request.id}\``);
        return { reply: "checkpoint", ...checkpointDetail(found) };
      }
      case "fork_checkpoint":
        return { reply: "started", ...this.begin(`from checkpoint ${request.id}`) };
      case "objects":
        return { reply: "objects", objects: house.objects[request.pid] ?? [] };
      case "chain": {
        const chain = chainOf(house.log, house.processes, request.pid, request.seq);
        return chain ? { reply: "chain", ...chain } : notFound(`the journal has no call ${request.seq} of pid \`${request.pid}\``);
      }
      case "log_verify":
        return { reply: "verified", ...house.verified };
      case "undo":
        return { reply: "started", ...this.begin(`undo run ${request.run}`) };
      case "log":
        return { reply: "log", rows: rowsOf(house.log, request) };
      case "doctor":
        return { reply: "doctor", checks: house.checks };
      case "models":
        return { reply: "models", models: house.models, found: house.found };
      case "settings":
        return { reply: "settings", ...house.settings };
      case "change_settings": {
        const { command: _, ...change } = request;
        for (const [name, value] of Object.entries(change)) {
          if (value !== null) Object.assign(house.settings, { [name === "model" ? "next_model" : name]: value });
        }
        return { reply: "settings", ...house.settings };
      }
      case "toggle":
      case "watch":
        return { reply: "done" };
      default:
        return notFound(`the made-up house does not know \`${request.command}\``);
    }
  }

  protected heed(pid: number, signal: SignalView): void {
    if (signal === "kill") {
      this.end(pid, "killed");
      return;
    }
    const process = this.house.processes.find((other) => other.pid === pid);
    if (!process || signal === "interrupt") return;
    process.state = signal === "pause" ? "paused" : "running";
    this.tell({ type: "process", process: { ...process } });
  }

  /** Starts a process that does nothing by itself. */
  protected begin(goal: string): { pid: number; run: number } {
    const pid = 1 + Math.max(0, ...this.house.processes.map((process) => process.pid));
    const process = processRow({ pid, goal, state: "running" });
    this.house.processes.unshift(process);
    this.tell({ type: "process", process: { ...process } });
    return { pid, run: pid };
  }

  protected end(pid: number, state: ProcessView["state"]): void {
    const process = this.house.processes.find((other) => other.pid === pid);
    if (!process) return;
    process.state = state;
    process.ended_ms = Date.now();
    this.house.approvals = this.house.approvals.filter((approval) => approval.pid !== pid);
    this.tell({ type: "process", process: { ...process } });
    this.tell({ type: "done", pid, run: process.run, ok: state === "exited", error: null });
  }
}

function notFound(message: string): Reply {
  return { reply: "error", code: "not_found", message, hint: null };
}
