import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import {
  aBudget,
  aCapability,
  aCheckpoint,
  anApproval,
  aProcess,
  emptyHouse,
  type FakeHouse,
} from "../lib/bridge.fake";
import { speak } from "../lib/i18n/index.svelte";
import { Stage } from "../testing";
import Window from "./Window.svelte";

let stage: Stage;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
  localStorage.clear();
});
afterEach(() => {
  stage.end();
  vi.useRealTimers();
});

const ended = { state: "exited", ended_ms: 1 } as const;
const family = [
  aProcess({ pid: 5, run: 5, goal: "Chart", ...ended }),
  aProcess({ pid: 4, parent: 1, run: 1, goal: "Dates", ...ended }),
  aProcess({ pid: 3, parent: 1, run: 1, goal: "Old letters", state: "paused" }),
  aProcess({ pid: 1, run: 1, goal: "Tidy", step: "Move a.txt", status: "2 of 4 moved", steps: 3 }),
];

async function open(house: Partial<FakeHouse> = {}) {
  stage = new Stage(Window, { ...emptyHouse(), processes: family, ...house });
  stage.house.settings = { ...emptyHouse().settings, language: "en" };
  speak("en");
  await stage.pass();
  stage.get("nav-agents").click();
  await stage.pass();
}

const tree = () => {
  const found = document.querySelector<HTMLElement>("[role=tree]");
  if (!found) throw new Error("there is no tree");
  return found;
};
const rows = () =>
  [...tree().querySelectorAll("[role=treeitem]")].map((row) => {
    const open = row.getAttribute("aria-expanded");
    const name = row.querySelector("bdi")?.textContent ?? row.textContent?.trim();
    return `${row.getAttribute("aria-level")} ${name}${open === null ? "" : open === "true" ? " v" : " >"}`;
  });
const chosen = () => {
  const row = tree().querySelector("[aria-selected=true]");
  return row?.querySelector("bdi")?.textContent ?? row?.textContent?.trim();
};
const calls = (name: string) => stage.bridge.calls.filter(([called]) => called === name).map(([, carried]) => carried);
async function keys(...pressed: string[]) {
  for (const key of pressed) await stage.press(tree(), { key });
}
async function click(testid: string) {
  stage.get(testid).click();
  await stage.pass();
}

describe("the tree", () => {
  test("folds what has ended and opens what runs", async () => {
    await open();
    expect(rows()).toEqual(["1 Tidy v", "2 Old letters", "2 1 ended >", "1 1 ended >"]);
  });

  test("says how each stands in words, with its step and what it used", async () => {
    await open({ processes: [aProcess({ ...family[3], budget: aBudget({ tokens: 4000 }, { tokens: 1200 }) })] });
    const said = stage.text("agent-row");
    for (const words of ["Tidy", "running · 2 of 4 moved", "step 3 · Move a.txt", "1,200 of 4,000 tokens"]) {
      expect(said).toContain(words);
    }
    expect(stage.get("agent-row").querySelector("[role=meter]")?.getAttribute("aria-valuetext")).toBe("1,200 of 4,000 tokens");
  });

  const walks: [name: string, pressed: string[], chosen: string, rows: string[]][] = [
    ["down goes through what is open", ["ArrowDown", "ArrowDown"], "Old letters", ["1 Tidy v", "2 Old letters", "2 1 ended >", "1 1 ended >"]],
    ["left goes to what is above, then closes it", ["ArrowDown", "ArrowDown", "ArrowLeft", "ArrowLeft"], "Tidy", ["1 Tidy >", "1 1 ended >"]],
    ["right opens, then goes in", ["End", "ArrowRight", "ArrowRight"], "Chart", ["1 Tidy v", "2 Old letters", "2 1 ended >", "1 1 ended v", "2 Chart"]],
    ["Enter opens what is folded", ["End", "Enter"], "1 ended", ["1 Tidy v", "2 Old letters", "2 1 ended >", "1 1 ended v", "2 Chart"]],
    ["Home and End", ["End", "Home"], "Tidy", ["1 Tidy v", "2 Old letters", "2 1 ended >", "1 1 ended >"]],
  ];

  test.each(walks)("%s", async (_, pressed, at, shown) => {
    await open();
    await keys(...pressed);
    expect([chosen(), rows()]).toEqual([at, shown]);
    expect(tree().getAttribute("aria-activedescendant")).toBe(tree().querySelector("[aria-selected=true]")?.id);
  });

  test("what was closed stays closed when events come", async () => {
    await open();
    await keys("Home", "ArrowLeft");
    stage.bridge.tell({ type: "process", process: aProcess({ ...family[3], status: "3 of 4 moved" }) });
    await stage.pass();
    expect(rows()).toEqual(["1 Tidy >", "1 1 ended >"]);
  });

  test("a search opens what it finds, with what stands above it", async () => {
    await open();
    const search = document.querySelector<HTMLInputElement>("[data-search]");
    if (!search) throw new Error("no search field");
    await stage.type(search, "dates");
    expect(rows()).toEqual(["1 Tidy v", "2 1 ended v", "3 Dates"]);
    await stage.type(search, "nothing like it");
    expect(document.querySelector(".empty")?.textContent).toContain("No agent matches.");
  });

  test("one led to from elsewhere is brought into sight, whatever is folded", async () => {
    await open({ approvals: [anApproval({ pid: 4 })] });
    await keys("Home", "ArrowLeft");
    stage.get("nav-approvals").click();
    await stage.pass();
    stage.get("approval-row").click();
    await stage.pass();
    stage.get("approval-to-agent").click();
    await stage.pass();
    expect([chosen(), rows()]).toEqual(["Dates", ["1 Tidy v", "2 Old letters", "2 1 ended v", "3 Dates", "1 1 ended >"]]);
  });

  test("Enter goes to the agent, Escape comes back", async () => {
    await open();
    await keys("Home", "Enter");
    expect(document.activeElement?.textContent).toBe("Tidy");
    await stage.press(document.activeElement ?? document.body, { key: "Escape" });
    expect(document.activeElement).toBe(tree());
  });
});

describe("what can be done", () => {
  const told: [key: string, on: string[], signal: object[]][] = [
    ["p", ["Home"], [{ command: "signal", pid: 1, signal: "pause" }]],
    ["p", ["Home", "ArrowDown"], [{ command: "signal", pid: 3, signal: "resume" }]],
    ["i", ["Home"], [{ command: "signal", pid: 1, signal: "interrupt" }]],
    ["Delete", ["Home"], []],
    ["p", ["End", "ArrowRight", "ArrowDown"], []],
  ];

  test.each(told)("the key %s after %j", async (key, on, signal) => {
    await open();
    await keys(...on, key);
    expect(calls("signal")).toEqual(signal);
  });

  test("a paused agent says so and goes on", async () => {
    await open();
    await keys("Home");
    await click("pause-button");
    expect(stage.text("agent-state")).toBe("paused");
    expect(stage.find("pause-button")).toBeNull();
    await click("resume-button");
    expect(stage.text("agent-state")).toBe("running");
  });

  test("stopping asks once more in place, and says who else ends", async () => {
    await open();
    await keys("Home", "Delete");
    expect(stage.text("stop-button-ask")).toContain("Stop it for good, and 1 that it started?");
    expect(document.activeElement).toBe(stage.get("stop-button-yes"));
    await click("stop-button-yes");
    expect(calls("signal")).toEqual([{ command: "signal", pid: 1, signal: "kill" }]);
    expect(stage.text("agent-state")).toBe("stopped");
  });

  test.each<[string, () => Promise<void>]>([
    ["Escape", () => stage.press(stage.get("stop-button-yes"), { key: "Escape" })],
    ["the other button", () => click("stop-button-no")],
    ["a key held down since the first question", () => stage.press(stage.get("stop-button-yes"), { key: "Enter", repeat: true })],
  ])("%s stops nothing", async (_, act) => {
    await open();
    await keys("Home");
    await stage.press(document.body, { key: ".", ctrlKey: true });
    await act();
    expect(calls("signal")).toEqual([]);
    expect(stage.text("agent-state")).toBe("running");
  });

  test("a message is written and sent", async () => {
    await open();
    await keys("Home", "m");
    const field = stage.get<HTMLInputElement>("message-input");
    expect(document.activeElement).toBe(field);
    await stage.type(field, "  keep the envelopes ");
    field.form?.requestSubmit();
    await stage.pass();
    expect(calls("send_message")).toEqual([{ command: "send_message", pid: 1, text: "keep the envelopes" }]);
    expect(stage.text("message-sent")).toContain("Sent.");
    expect(stage.find("message-input")).toBeNull();
  });

  test("what fails says why", async () => {
    await open();
    stage.bridge.replies.set("signal", { reply: "error", code: "denied", message: "pid `1` has ended", hint: null });
    await keys("Home", "p");
    expect(stage.text("problem")).toContain("pid 1 has ended");
  });
});

describe("one agent in full", () => {
  test("its budget is told in words, children counted in", async () => {
    const budget = aBudget({ tokens: 4000, calls: 3, children: 2 }, { tokens: 1200, calls: 3, children: 1 });
    await open({ processes: [aProcess({ pid: 1, budget })] });
    await keys("Home");
    const bars = [...document.querySelectorAll("[data-testid=budget]")].map((bar) => bar.textContent?.trim());
    expect(bars).toEqual([
      "1,200 of 4,000 tokens, children counted in",
      "3 of 3 calls, children counted in: used up",
      "1 of 2 children",
    ]);
  });

  test("parts are walked with the arrows", async () => {
    await open();
    await keys("Home");
    await stage.press(stage.get("agent-part-steps"), { key: "ArrowRight" });
    expect(document.activeElement).toBe(stage.get("agent-part-capabilities"));
    await stage.press(stage.get("agent-part-capabilities"), { key: "End" });
    expect(stage.get("agent-part-objects").getAttribute("aria-selected")).toBe("true");
  });

  test("capabilities say what, how and until when; revoking asks once more", async () => {
    const capabilities = [
      aCapability({ id: 9, pid: 1, rights: ["write"], stance: "ask", constraints: ["paths `*.txt`"], uses_left: 1 }),
      aCapability({ id: 8, pid: 1, status: "revoked" }),
    ];
    await open({ capabilities });
    await keys("Home");
    await click("agent-part-capabilities");
    expect(stage.text("capability-row")).toContain("may after your yes write /home/mei/Steward paths *.txt · 1 use left");
    expect(document.querySelectorAll("[data-testid=capability-revoke]")).toHaveLength(1);
    await click("capability-revoke");
    await click("capability-revoke-yes");
    expect(calls("revoke_capability")).toEqual([{ command: "revoke_capability", id: 9 }]);
    expect(calls("capabilities")).toHaveLength(2);
  });

  test("what would be said to a call is explained", async () => {
    await open();
    await keys("Home");
    await click("agent-part-capabilities");
    const field = stage.get<HTMLInputElement>("explain-input");
    await stage.type(field, "fs.write notes.md");
    field.form?.requestSubmit();
    await stage.pass();
    expect(calls("explain")).toEqual([{ command: "explain", pid: 1, what: "fs.write notes.md" }]);
    expect(stage.text("explanation")).toContain("It may after your yes.");
    expect(stage.text("explanation")).toContain("does not cover it");
  });

  test("going back to a checkpoint is offered only after its outside effects are shown", async () => {
    await open({ checkpoints: [aCheckpoint({ pid: 1 })] });
    await keys("Home");
    await click("agent-part-checkpoints");
    expect(stage.find("checkpoint-restore")).toBeNull();
    await click("checkpoint-show");
    expect(stage.text("checkpoint-outside")).toContain("letters/dentist.txt was moved");
    await click("checkpoint-restore");
    expect(calls("restore_checkpoint")).toEqual([]);
    await click("checkpoint-restore-yes");
    expect(calls("restore_checkpoint")).toEqual([{ command: "restore_checkpoint", id: 5 }]);
  });

  test("a checkpoint is made, and a new agent started from it", async () => {
    await open();
    await keys("Home");
    await click("agent-part-checkpoints");
    const field = stage.get<HTMLInputElement>("checkpoint-name");
    await stage.type(field, "before the moves");
    field.form?.requestSubmit();
    await stage.pass();
    expect(calls("create_checkpoint")).toEqual([{ command: "create_checkpoint", pid: 1, label: "before the moves" }]);
    await click("checkpoint-fork");
    expect(stage.text("checkpoint-forked")).toContain("The new agent is pid 6.");
  });

  test("an agent's waiting approval leads to the dialog", async () => {
    await open({ approvals: [anApproval({ pid: 1 })] });
    await keys("Home");
    stage.get("agent-waiting").querySelector("button")?.click();
    expect(calls("open_approval")).toEqual([7]);
  });
});
