import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { anApproval, emptyHouse } from "../lib/bridge.fake";
import { speak } from "../lib/i18n/index.svelte";
import type { ApprovalView } from "../lib/types/ApprovalView";
import { Stage } from "../testing";
import Approval from "./Approval.svelte";

let stage: Stage;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
  speak("en");
});
afterEach(() => {
  stage.end();
  vi.useRealTimers();
});

async function open(...approvals: ApprovalView[]) {
  stage = new Stage(Approval, { ...emptyHouse(), approvals });
  await stage.pass();
}

const approve = () => stage.get<HTMLButtonElement>("approval-approve");
const decisions = () => stage.bridge.calls.filter(([name]) => name === "decide").map(([, carried]) => carried);
const yes = { id: 7, answer: "yes", digest: "d1" };
const no = { id: 7, answer: "no", digest: "d1" };
const CTRL_ENTER = { key: "Enter", ctrlKey: true };

test("says exactly what would be done", async () => {
  await open(anApproval({ risks: ["executable"] }));
  expect(stage.text("approval-title")).toBe("Overwrite todo.txt?");
  expect(stage.text("approval-who")).toBe("writer (pid 41) for “in todo.txt change dentist to doctor”");
  expect(stage.text("approval-path")).toBe("/home/mei/Steward/todo.txt");
  expect(stage.text("approval-bytes")).toBe("51 → 50 bytes · 1 line of 3");
  expect(stage.get("approval-sha256").title).toHaveLength(64);
  expect(stage.text("approval-risk")).toBe("The file there now can be run as a program.");
  const lines = [...stage.get("approval-diff").children].map((line) => line.textContent?.replace(/\s+/g, " ").trim());
  expect(lines).toEqual(["buy milk", "− removed: call the dentist", "+ added: call the doctor", "return library books"]);
});

test("text from files is text", async () => {
  const hostile = '<img src=x onerror="alert(1)">';
  await open(anApproval({ relative: hostile, path: hostile, goal: hostile, items: [hostile], diff: [{ kind: "added", text: hostile }] }));
  expect(document.querySelector("img")).toBeNull();
  expect(stage.text("approval-title")).toBe(`Overwrite ${hostile}?`);
});

type Act = () => unknown;
const press = (init: KeyboardEventInit, on: () => EventTarget = () => window) => () => stage.press(on(), init);
const wait = (ms: number) => () => stage.pass(ms);
const click = (testid: string) => () => stage.get(testid).click();
const again = (part: Partial<ApprovalView>) => () => stage.bridge.tell({ type: "approval", ...anApproval(part) });
const comeUp = () => stage.bridge.signal("approval-open", { id: 7 });

const rows: [name: string, acts: Act[], decided: unknown[]][] = [
  ["a click after half a second approves", [wait(500), click("approval-approve")], [yes]],
  ["a click before does not", [wait(499), click("approval-approve")], []],
  ["Ctrl+Enter after half a second approves", [wait(500), press(CTRL_ENTER)], [yes]],
  ["Ctrl+Enter before does not", [wait(499), press(CTRL_ENTER)], []],
  ["Ctrl+Enter on the button approves once", [wait(500), press(CTRL_ENTER, approve)], [yes]],
  ["Enter does not", [wait(500), press({ key: "Enter" })], []],
  ["Enter on the button does not", [wait(500), press({ key: "Enter" }, approve)], []],
  ["Shift+Enter on the button does not", [wait(500), press({ key: "Enter", shiftKey: true }, approve)], []],
  ["an Enter of an input method does not", [wait(500), press({ ...CTRL_ENTER, isComposing: true }, approve)], []],
  ["a held key does not", [wait(500), press({ ...CTRL_ENTER, repeat: true }, approve)], []],
  ["Escape denies", [wait(500), press({ key: "Escape" })], [no]],
  ["Escape before half a second does nothing", [wait(499), press({ key: "Escape" })], []],
  ["the button denies at once", [click("approval-deny")], [no]],
  ["Enter on the deny button denies", [press({ key: "Enter" }, () => stage.get("approval-deny"))], [no]],
  ["Later is no answer", [wait(500), click("approval-later")], []],
  ["a change of what is asked begins the wait anew", [wait(500), again({ digest: "d2" }), wait(499), press(CTRL_ENTER)], []],
  [
    "and binds the answer to what is shown",
    [wait(500), again({ digest: "d2" }), wait(500), press(CTRL_ENTER)],
    [{ ...yes, digest: "d2" }],
  ],
  ["the same told again does not", [wait(400), again({}), wait(100), press(CTRL_ENTER)], [yes]],
  ["coming up again begins the wait anew", [wait(5000), comeUp, wait(499), press(CTRL_ENTER)], []],
  ["two quick answers are one", [wait(500), press(CTRL_ENTER), press(CTRL_ENTER), press({ key: "Escape" })], [yes]],
];

test.each(rows)("%s", async (_, acts, decided) => {
  await open(anApproval());
  for (const act of acts) {
    await act();
    await stage.pass();
  }
  expect(decisions()).toEqual(decided);
});

describe("always", () => {
  const scopes = [
    { id: "path", words: "overwriting todo.txt in this run" },
    { id: "folder", words: "overwriting any file in this run" },
  ];
  const narrow = { id: 7, answer: { always: { scope: "path" } }, digest: "d1" };
  const wide = { id: 7, answer: { always: { scope: "folder" } }, digest: "d1" };
  const choose = (at: number) => () => document.querySelectorAll<HTMLElement>("[data-testid=always-scope]")[at]?.click();
  const begin = [wait(500), click("approval-always")];

  const rows: [name: string, acts: Act[], decided: unknown[]][] = [
    ["choosing it is no answer", [...begin, wait(5000)], []],
    ["the narrowest scope is proposed", [...begin, wait(500), click("approval-approve")], [narrow]],
    ["a wider one is chosen", [...begin, choose(1), wait(500), click("approval-approve")], [wide]],
    ["it must have stood for half a second", [...begin, wait(499), click("approval-approve")], []],
    ["so must another scope", [...begin, wait(500), choose(1), wait(499), press(CTRL_ENTER)], []],
    ["Ctrl+Enter does what the button says", [...begin, wait(500), press(CTRL_ENTER)], [narrow]],
    ["Enter on a scope does not", [...begin, wait(500), press({ key: "Enter" }, () => stage.get("always-scope"))], []],
    ["Escape leaves it without an answer", [...begin, wait(500), press({ key: "Escape" })], []],
    ["then a yes is to this one only", [...begin, press({ key: "Escape" }), wait(500), press(CTRL_ENTER)], [yes]],
    ["the way back, too", [...begin, wait(500), click("approval-once"), wait(500), click("approval-approve")], [yes]],
    ["a no is a no", [...begin, click("approval-deny")], [no]],
    ["a change of what is asked takes the choice back", [...begin, again({ scopes, digest: "d2" }), wait(500), press(CTRL_ENTER)], [{ ...yes, digest: "d2" }]],
  ];

  test.each(rows)("%s", async (_, acts, decided) => {
    await open(anApproval({ scopes }));
    for (const act of acts) {
      await act();
      await stage.pass();
    }
    expect(decisions()).toEqual(decided);
  });

  test("shows the scope in words before it counts, the narrowest first", async () => {
    await open(anApproval({ scopes }));
    await stage.pass(500);
    stage.get("approval-always").click();
    await stage.pass();
    const offered = [...stage.get("always").querySelectorAll("label")].map((label) => label.textContent?.trim());
    expect(offered).toEqual(scopes.map(({ words }) => words));
    expect(stage.text("always-chosen")).toBe("From now on without asking: overwriting todo.txt in this run");
    expect(stage.text("always")).toContain("You can revoke it there at any time.");
    expect(approve().textContent).toContain("Overwrite, always from now on");
  });

  test("the keys go to the scopes, and back to where they were", async () => {
    await open(anApproval({ scopes }));
    stage.get("approval-always").click();
    await stage.pass();
    expect(document.activeElement).toBe(stage.get("always-scope"));
    await stage.press(stage.get("always-scope"), { key: "Escape" });
    expect(document.activeElement).toBe(stage.get("approval-always"));
  });

  test("is not offered where only yes and no are", async () => {
    await open(anApproval());
    expect(stage.find("approval-always")).toBeNull();
  });
});

test("says when it expires, and that this is never a yes", async () => {
  await open(anApproval({ expires_ms: Date.now() + 12 * 60_000 }));
  expect(stage.text("approval-expiry")).toBe("Expires in 12 min; then it counts as no.");
  await stage.pass(13 * 60_000);
  expect(stage.text("approval-expiry")).toBe("Its time is over: it counts as no.");
});

test("the last answer closes the dialog", async () => {
  await open(anApproval());
  stage.get("approval-deny").click();
  await stage.pass();
  expect(stage.bridge.count("approval_close")).toBe(1);
});

describe("several", () => {
  const two = [anApproval(), anApproval({ id: 8, relative: "b.txt", digest: "d8" })];

  test("each has its own answer, and the next waits anew", async () => {
    await open(...two);
    await stage.pass(500);
    await stage.press(window, CTRL_ENTER);
    expect(stage.text("approval-title")).toBe("Overwrite b.txt?");
    expect(approve().disabled).toBe(true);
    await stage.press(window, CTRL_ENTER);
    expect(decisions()).toEqual([yes]);
    expect(stage.bridge.count("approval_close")).toBe(0);
  });

  test("stand by the process that asks, and are walked in that order", async () => {
    await open(anApproval(), anApproval({ id: 8, pid: 43, relative: "b.txt" }), anApproval({ id: 9, relative: "c.txt" }));
    const items = () => [...document.querySelectorAll("[data-testid=approval-item] bdi")].map((item) => item.textContent);
    expect(items()).toEqual(["Overwrite todo.txt?", "Overwrite c.txt?", "Overwrite b.txt?"]);
    expect(document.querySelectorAll("[data-testid=approval-group]")).toHaveLength(2);
    await stage.press(window, { key: "ArrowDown", altKey: true });
    expect(stage.text("approval-title")).toBe("Overwrite c.txt?");
  });

  test("are walked with Alt and the arrows", async () => {
    await open(...two);
    await stage.press(window, { key: "ArrowDown", altKey: true });
    expect(stage.text("approval-title")).toBe("Overwrite b.txt?");
    await stage.press(window, { key: "ArrowUp", altKey: true });
    expect(stage.text("approval-title")).toBe("Overwrite todo.txt?");
  });

  test("the one asked for is shown first", async () => {
    await open(...two);
    stage.bridge.signal("approval-open", { id: 8 });
    await stage.pass();
    expect(stage.text("approval-title")).toBe("Overwrite b.txt?");
  });
});

describe("when something else comes first", () => {
  const cases: [name: string, tell: () => void, says: string][] = [
    [
      "a decision in the terminal",
      () => stage.bridge.tell({ type: "decided", id: 7, approved: false, by: "terminal" }),
      "Already answered: denied (in the terminal).",
    ],
    [
      "its time running out",
      () => stage.bridge.tell({ type: "decided", id: 7, approved: false, by: "expired" }),
      "Nobody answered in time: it counted as no.",
    ],
    [
      "the end of the process",
      () => stage.bridge.tell({ type: "decided", id: 7, approved: false, by: "process ended" }),
      "Nobody needs this answer any more: the process has ended.",
    ],
  ];

  test.each(cases)("%s is told, and nothing can be approved", async (_, tell, says) => {
    await open(anApproval());
    await stage.pass(500);
    tell();
    await stage.pass();
    expect(stage.text("approval-ended")).toBe(says);
    expect(stage.find("approval-approve")).toBeNull();
    await stage.press(window, CTRL_ENTER);
    expect(decisions()).toEqual([]);
    await stage.press(window, { key: "Escape" });
    expect(stage.bridge.count("approval_close")).toBe(1);
  });

  test("an answer that does not count says so", async () => {
    await open(anApproval());
    stage.bridge.replies.set("decide", { reply: "decided", counted: false, note: "it was denied in the terminal" });
    stage.get("approval-deny").click();
    await stage.pass();
    expect(stage.text("approval-ended")).toBe("it was denied in the terminal");
    expect(stage.bridge.count("approval_close")).toBe(0);
  });

  test("an answer that fails leaves the question standing", async () => {
    await open(anApproval());
    stage.bridge.replies.set("decide", { reply: "error", code: "denied", message: "the digest `d1` is not the one asked", hint: null });
    stage.get("approval-deny").click();
    await stage.pass();
    expect(stage.text("problem")).toContain("the digest d1 is not the one asked");
    expect(stage.text("approval-title")).toBe("Overwrite todo.txt?");
  });
});

test("with nothing to answer it says so and closes", async () => {
  await open();
  expect(document.querySelector("h1")?.textContent).toBe("Nothing waits for your answer.");
  stage.get("approval-proceed").click();
  expect(stage.bridge.count("approval_close")).toBe(1);
});
