/**
 * A bridge to a made-up house: what a plain browser shows while the interface is worked on, and
 * what tests talk to. It is not part of the program.
 */

import type { Bridge, Request, Signals } from "./bridge";
import type { ApprovalView } from "./types/ApprovalView";
import type { Decide } from "./types/Decide";
import type { Event } from "./types/Event";
import type { ProcessDetail } from "./types/ProcessDetail";
import type { ProcessView } from "./types/ProcessView";
import type { Reply } from "./types/Reply";
import type { StepView } from "./types/StepView";
import { type FakeHouse, believableHouse, detailOf, processRow } from "./fake/data";

export type { FakeHouse } from "./fake/data";
export { anApproval, aProcess, emptyHouse } from "./fake/data";

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
          return { reply: "error", code: "not_found", message: `there is no process \`${request.pid}\``, hint: null };
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
        if (request.signal === "kill") this.end(request.pid, "killed");
        return { reply: "done" };
      case "undo":
        return { reply: "started", ...this.begin(`undo run ${request.run}`) };
      case "log":
        return { reply: "log", rows: house.log.slice(0, request.limit ?? 100) };
      case "doctor":
        return { reply: "doctor", checks: house.checks };
      case "models":
        return { reply: "models", models: house.models };
      case "settings":
        return { reply: "settings", ...house.settings };
      case "change_settings": {
        const { command: _, ...change } = request;
        for (const [name, value] of Object.entries(change)) {
          if (value !== null) Object.assign(house.settings, { [name]: value });
        }
        return { reply: "settings", ...house.settings };
      }
      case "toggle":
      case "watch":
        return { reply: "done" };
      default:
        return { reply: "error", code: "unavailable", message: `\`${request.command}\` is not there yet`, hint: null };
    }
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

/** A house with a believable past, whose agents act out a request. */
export function believable(): Bridge {
  return new ActingBridge(believableHouse());
}

const SUMMARY =
  "Saved the summary as `summary.md`.\n\n- The lease for **Mill Lane 7** ends on 30 September 2027.\n- Notice must be given three months before.\n- The deposit is two months' rent.";

/** Acts out a request: it reads, writes after a yes where the words ask for it, and answers. */
class ActingBridge extends FakeBridge {
  #asked = new Map<number, (approved: boolean) => void>();

  override async decide(decision: Decide): Promise<Reply> {
    const reply = await super.decide(decision);
    this.#asked.get(decision.id)?.(decision.answer !== "no");
    return reply;
  }

  override async openApproval(id: number | null) {
    await super.openApproval(id);
    window.open(`approval.html?id=${id}`, "approval", "width=640,height=620");
  }

  override async openMain(pid: number | null) {
    await super.openMain(pid);
    window.open(`index.html?pid=${pid}`, "main", "width=1120,height=680");
  }

  protected override begin(goal: string) {
    const started = super.begin(goal);
    void this.#act(started.pid, goal);
    return started;
  }

  async #act(pid: number, goal: string) {
    await this.#step(pid, step(1, "fs.list", "List the workspace", "3 files"), 500);
    await this.#step(pid, step(2, "fs.read", "Read notes.md", "1,204 bytes, text"), 700);
    if (/save|write|change|delete|move|存|写|改|删/i.test(goal) && !(await this.#write(pid))) {
      await this.#speak(pid, "Nothing was written: you said no.");
    } else await this.#speak(pid, SUMMARY);
    this.end(pid, "exited");
  }

  async #write(pid: number): Promise<boolean> {
    const approval: ApprovalView = { ...writing(pid), asked_ms: Date.now() };
    const waiting = step(3, "fs.write", "Write summary.md", "");
    this.tell({ type: "step", pid, run: pid, step: { ...waiting, state: "waiting" } });
    this.house.approvals.push(approval);
    this.tell({ type: "approval", ...approval });
    const approved = await new Promise<boolean>((decided) => this.#asked.set(approval.id, decided));
    const state = approved ? "done" : "denied";
    const detail = approved ? "184 bytes" : "you said no";
    this.tell({ type: "step", pid, run: pid, step: { ...waiting, state, detail, elapsed_ms: 4200 } });
    return approved;
  }

  async #step(pid: number, done: StepView, ms: number) {
    this.tell({ type: "step", pid, run: pid, step: { ...done, detail: "", state: "running" } });
    await pause(ms);
    this.tell({ type: "step", pid, run: pid, step: { ...done, state: "done", elapsed_ms: ms } });
  }

  async #speak(pid: number, text: string) {
    for (const piece of text.match(/\s*\S+/g) ?? []) {
      if (!this.house.processes.some((process) => process.pid === pid && process.ended_ms === null)) return;
      this.tell({ type: "token", pid, run: pid, text: piece });
      await pause(40);
    }
    this.tell({ type: "answer", pid, run: pid, text });
    const detail: ProcessDetail | undefined = this.house.details[pid];
    if (detail) detail.answer = text;
  }
}

function step(seq: number, name: string, title: string, detail: string): StepView {
  return { seq, name, title, detail, state: "running", elapsed_ms: null };
}

function writing(pid: number): ApprovalView {
  const made = believableHouse().approvals[1];
  if (!made) throw new Error("the made-up house has no second approval");
  return { ...made, id: 1000 + pid, pid, run: pid };
}

function pause(ms: number) {
  return new Promise((over) => setTimeout(over, ms));
}
