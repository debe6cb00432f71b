import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { aGrant, anApproval, emptyHouse, type FakeHouse } from "../lib/bridge.fake";
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

async function open(house: Partial<FakeHouse> = {}) {
  stage = new Stage(Window, { ...emptyHouse(), ...house, settings: { ...emptyHouse().settings, language: "en" } });
  speak("en");
  await stage.pass();
  stage.get("nav-approvals").click();
  await stage.pass();
}

const all = (testid: string) => [...document.querySelectorAll<HTMLElement>(`[data-testid="${testid}"]`)];
const calls = (name: string) => stage.bridge.calls.filter(([called]) => called === name).map(([, carried]) => carried);
async function click(testid: string, at = 0) {
  all(testid)[at]?.click();
  await stage.pass();
}
const tree = () => {
  const found = document.querySelector("[role=tree]");
  if (!found) throw new Error("there is no tree");
  return found;
};
const rows = () =>
  [...tree().querySelectorAll("[role=treeitem]")].map(
    (row) => `${row.getAttribute("aria-level")} ${row.querySelector("bdi, b, .soft")?.textContent?.trim()}`,
  );

const queue = [
  anApproval({ id: 7, pid: 41, image: "writer" }),
  anApproval({ id: 8, pid: 43, image: "reader", relative: "b.txt" }),
  anApproval({ id: 9, pid: 41, image: "writer", relative: "c.txt" }),
];

describe("the queue", () => {
  test("stands by the process that asks, and is counted", async () => {
    await open({ approvals: queue });
    expect([stage.text("approvals-count"), document.title]).toEqual(["3", "(3) Steward"]);
    expect(rows()).toEqual([
      "1 writer (pid 41)",
      "2 Overwrite todo.txt?",
      "2 Overwrite c.txt?",
      "1 reader (pid 43)",
      "2 Overwrite b.txt?",
    ]);
    expect(stage.text("approval-group")).toContain("2 wait");
  });

  test("is shown in full, and answered only in the dialog", async () => {
    await open({ approvals: queue });
    await click("approval-row", 2);
    expect(stage.text("approval-bytes")).toBe("51 → 50 bytes · 1 line of 3");
    expect([stage.find("approval-approve"), stage.find("approval-deny")]).toEqual([null, null]);
    await click("approval-review");
    expect(calls("open_approval")).toEqual([8]);
    expect(calls("decide")).toEqual([]);
  });

  test("Enter on a row opens the dialog there; on a group it folds it", async () => {
    await open({ approvals: queue });
    await stage.press(tree(), { key: "Home" });
    await stage.press(tree(), { key: "ArrowDown" });
    await stage.press(tree(), { key: "Enter" });
    expect(calls("open_approval")).toEqual([7]);
    await stage.press(tree(), { key: "Home" });
    await stage.press(tree(), { key: "Enter" });
    expect(rows()[1]).toBe("1 reader (pid 43)");
  });

  test("says when a question expires, and that this is never a yes", async () => {
    await open({ approvals: [anApproval({ expires_ms: Date.now() + 12 * 60_000 })] });
    expect(stage.text("approval-row")).toContain("expires in 12 min; then it counts as no");
    await stage.pass(11 * 60_000 + 30_000);
    expect(stage.text("approval-row")).toContain("expires in 30 s; then it counts as no");
    await stage.pass(31_000);
    expect(stage.text("approval-row")).toContain("its time is over; it counts as no");
  });

  const elsewhere: [by: string, approved: boolean, says: string][] = [
    ["terminal", false, "answered in the terminal: denied"],
    ["window", true, "answered in the window: approved"],
    ["expired", false, "expired; it counted as no"],
    ["process ended", false, "no longer needed: the process ended"],
    ["api", true, "answered by api: approved"],
  ];

  test.each(elsewhere)("an answer by %s is told", async (by, approved, says) => {
    await open({ approvals: [anApproval()] });
    await click("approval-row");
    stage.bridge.tell({ type: "decided", id: 7, approved, by });
    await stage.pass();
    expect(stage.text("approval-answered")).toBe(says);
    expect(stage.find("approval-review")).toBeNull();
    expect(stage.find("approval-row")).toBeNull();
    expect(stage.text("answered-row")).toContain(says);
  });

  test("a question is answered where it stands", async () => {
    await open({ questions: [{ id: 3, pid: 1, run: 1, text: "Which?", choices: ["a.csv", "b.csv"], asked_ms: 0 }] });
    stage.get("question-row").querySelectorAll("button")[1]?.click();
    await stage.pass();
    expect(calls("answer_question")).toEqual([{ command: "answer_question", id: 3, text: "b.csv" }]);
    expect(stage.find("question-row")).toBeNull();
  });
});

describe("standing answers", () => {
  const grants = [aGrant(), aGrant({ id: 2, words: "moving files", allow: false, by: "terminal", revoked_ms: Date.now() })];

  async function standing(house: Partial<FakeHouse>) {
    await open(house);
    await click("approvals-standing");
  }

  test("are listed with their date and scope, and how often they counted", async () => {
    await standing({ grants });
    expect(all("grant-row").map((row) => row.querySelector("bdi")?.textContent)).toEqual([
      "writing new files in letters/, without asking",
      "moving files",
    ]);
    await click("grant-row");
    const said = stage.text("grant-detail");
    for (const words of ["fs.write · always yes", "in the folder letters, in the workspace /home/mei/Steward", "in the window", "12 times"]) {
      expect(said).toContain(words);
    }
  });

  test("are revoked after a second question, by key too", async () => {
    await standing({ grants });
    await click("grant-row");
    await stage.press(all("grant-row")[0] ?? document.body, { key: "Delete" });
    expect(stage.text("grant-revoke-ask")).toContain("From then on you are asked again.");
    expect(calls("revoke_grant")).toEqual([]);
    await click("grant-revoke-yes");
    expect(calls("revoke_grant")).toEqual([{ command: "revoke_grant", id: 4 }]);
    expect(stage.text("grant-row")).toContain("Revoked");
    expect(stage.find("grant-revoke")).toBeNull();
  });

  test("one that is revoked cannot be revoked again", async () => {
    await standing({ grants });
    await click("grant-row", 1);
    expect(stage.find("grant-revoke")).toBeNull();
  });

  test("an empty list says what will be in it", async () => {
    await standing({});
    expect(document.querySelector(".empty")?.textContent).toContain("No answer stands for good.");
  });

  test("are searched", async () => {
    await standing({ grants });
    const search = document.querySelector<HTMLInputElement>("[data-search]");
    if (!search) throw new Error("no search field");
    await stage.type(search, "moving");
    expect(all("grant-row")).toHaveLength(1);
  });
});
