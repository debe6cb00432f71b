/** The world as a page sees it: kept current by events, read anew when events were missed. */

import { ask, type Bridge } from "../bridge";
import type { Event } from "../types/Event";
import type { Problem } from "../types/Problem";
import type { Settings } from "../types/Settings";
import type { SettingsChange } from "../types/SettingsChange";
import type { SignalView } from "../types/SignalView";
import type { Submit } from "../types/Submit";
import { apply, emptyWorld, takeIn, type World } from "./world";

export class House {
  world: World = $state(emptyWorld());
  settings: Settings | null = $state(null);
  /** Why the state could not be read, if it could not. */
  problem: Problem | null = $state(null);
  /** The first reading is done: an empty list is empty, not unknown. */
  read = $state(false);

  /** Events heard while a reading is under way. */
  #meanwhile: Event[] | null = null;

  constructor(readonly bridge: Bridge) {}

  /** Listens, then reads what stands. */
  async start(): Promise<void> {
    await this.bridge.on("host-event", (event) => this.hear(event));
    await Promise.all([this.settings === null ? this.readSettings() : null, this.readAll()]);
  }

  hear(event: Event): void {
    apply(this.world, event);
    this.#meanwhile?.push(event);
    if (this.world.stale) void this.readAll();
  }

  /** Reads every list anew. Events heard meanwhile are newer than the lists and apply again. */
  async readAll(): Promise<void> {
    const missed = this.world.stale;
    this.world.stale = false;
    const meanwhile: Event[] = [];
    this.#meanwhile = meanwhile;
    const [processes, approvals, questions] = await Promise.all([
      ask(this.bridge, { command: "processes" }, "processes"),
      ask(this.bridge, { command: "approvals" }, "approvals"),
      ask(this.bridge, { command: "questions" }, "questions"),
    ]);
    if (this.#meanwhile === meanwhile) this.#meanwhile = null;

    this.problem = [processes, approvals, questions].find((reply) => reply.reply === "error") ?? null;
    if (processes.reply !== "error") this.world.processes = processes.processes;
    if (approvals.reply !== "error") this.world.approvals = approvals.approvals;
    if (questions.reply !== "error") this.world.questions = questions.questions;
    for (const event of meanwhile) if (LISTED.includes(event.type)) apply(this.world, event);
    this.read = true;
    if (missed) await this.#readTales();
  }

  /** Reads anew what is known of processes beyond their rows: steps or an end may have been missed. */
  async #readTales(): Promise<void> {
    const pids = Object.keys(this.world.tales).map(Number);
    await Promise.all(pids.filter((pid) => this.world.tales[pid]?.ok === null).map((pid) => this.readProcess(pid)));
  }

  async readSettings(): Promise<void> {
    const reply = await ask(this.bridge, { command: "settings" }, "settings");
    if (reply.reply !== "error") this.settings = reply;
  }

  async changeSettings(change: Partial<SettingsChange>): Promise<Problem | null> {
    const whole: SettingsChange = {
      hotkey: null,
      workspace: null,
      language: null,
      theme: null,
      model: null,
      ...change,
    };
    const reply = await ask(this.bridge, { command: "change_settings", ...whole }, "settings");
    if (reply.reply === "error") return reply;
    this.settings = reply;
    return null;
  }

  /** Reads one process in full. */
  async readProcess(pid: number): Promise<Problem | null> {
    const reply = await ask(this.bridge, { command: "process", pid }, "process");
    if (reply.reply === "error") return reply;
    takeIn(this.world, reply);
    return null;
  }

  submit(submit: Submit) {
    return ask(this.bridge, { command: "submit", ...submit }, "started");
  }

  signal(pid: number, signal: SignalView) {
    return ask(this.bridge, { command: "signal", pid, signal }, "done");
  }

  kill(pid: number) {
    return this.signal(pid, "kill");
  }

  sendMessage(pid: number, text: string) {
    return ask(this.bridge, { command: "send_message", pid, text }, "done");
  }

  undo(run: number) {
    return ask(this.bridge, { command: "undo", run }, "started");
  }

  async answerQuestion(id: number, text: string): Promise<Problem | null> {
    const reply = await ask(this.bridge, { command: "answer_question", id, text }, "decided");
    if (reply.reply === "error") return reply;
    this.world.questions = this.world.questions.filter((question) => question.id !== id);
    return null;
  }
}

const LISTED: readonly Event["type"][] = ["process", "approval", "decided", "question", "done"];
