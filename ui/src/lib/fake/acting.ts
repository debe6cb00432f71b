/** A made-up house that lives: its agents act out a request. What a plain browser shows. */

import type { Bridge } from "../bridge";
import { FakeBridge } from "../bridge.fake";
import type { ApprovalView } from "../types/ApprovalView";
import type { Decide } from "../types/Decide";
import type { ProcessDetail } from "../types/ProcessDetail";
import type { Reply } from "../types/Reply";
import type { StepView } from "../types/StepView";
import { believableHouse } from "./data";

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
