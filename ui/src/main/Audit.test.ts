import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import type { Exported } from "../lib/bridge";
import { aProcess, aRow, emptyHouse, type FakeHouse } from "../lib/bridge.fake";
import { speak } from "../lib/i18n/index.svelte";
import type { Chain } from "../lib/types/Chain";
import type { LogRow } from "../lib/types/LogRow";
import type { Reply } from "../lib/types/Reply";
import { Stage } from "../testing";
import { PAGE } from "./audit.svelte";
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
  stage.get("nav-audit").click();
  await stage.pass();
}

const all = (testid: string) => [...document.querySelectorAll<HTMLElement>(`[data-testid="${testid}"]`)];
const asked = (command: string) =>
  stage.bridge.calls.filter(([called]) => called === command).map(([, carried]) => carried as Record<string, unknown>);
async function click(testid: string, at = 0) {
  all(testid)[at]?.click();
  await stage.pass();
}
const shown = () => all("audit-row").map((row) => row.dataset["key"]);
/** Answers from the host that come when told to. */
function hold(command: "log_verify" | "chain"): (reply: Reply) => Promise<void> {
  let give: (reply: Reply) => void = () => {};
  const whole = stage.bridge.request.bind(stage.bridge);
  stage.bridge.request = (request) =>
    request.command === command ? new Promise((come) => (give = come)) : whole(request);
  return async (reply) => {
    give(reply);
    await stage.pass();
  };
}

const lease = "/home/mei/Steward/letters/lease.txt";
const log: LogRow[] = [
  aRow({ id: 4, kind: "outcome", detail: "done", decision: "yes", by: "terminal" }),
  aRow({ id: 3, kind: "decision", detail: "approval 7: approved", decision: "yes", by: "terminal" }),
  aRow({ id: 2, pid: 40, run: 40, seq: 1, name: "fs.read", resource: lease, detail: "lease, read", decision: "allow" }),
  aRow({ id: 1, pid: 40, run: 40, seq: null, kind: "process", name: "spawn", resource: null, detail: "image reader" }),
];

describe("the search", () => {
  const filters: [field: string, typed: string, rows: string[]][] = [
    ["pid", "40", ["2", "1"]],
    ["call", "fs.*", ["4", "3", "2"]],
    ["resource", "/home/mei/Steward/letters", ["2"]],
    ["decision", "allow", ["2"]],
    ["by", "terminal", ["4", "3"]],
    ["until", "1970-01-02", ["4", "3", "2", "1"]],
    ["since", "1980-01-01", []],
  ];

  test.each(filters)("is narrowed by %s `%s`", async (field, typed, rows) => {
    await open({ log });
    await click("audit-filters-open");
    await stage.type(stage.get<HTMLInputElement>(`audit-filter-${field}`), typed);
    await stage.pass(250);
    expect(shown()).toEqual(rows);
    expect(stage.text("audit-filters-open")).toBe("Filters (1)");
    await click("audit-clear");
    expect(shown()).toHaveLength(4);
  });

  test("asks once typing rests, not for every letter", async () => {
    await open({ log });
    const search = document.querySelector<HTMLInputElement>("[data-search]");
    if (!search) throw new Error("no search field");
    for (const typed of ["a", "ap", "app"]) {
      await stage.type(search, typed);
      await stage.pass(100);
    }
    await stage.pass(250);
    expect(asked("log").map(({ text }) => text)).toEqual([null, "app"]);
    expect(shown()).toEqual(["3"]);
  });

  test("what cannot be understood is said at its field, and the rows stand", async () => {
    await open({ log });
    await click("audit-filters-open");
    await stage.type(stage.get<HTMLInputElement>("audit-filter-since"), "yesterday");
    await stage.pass(250);
    expect(document.querySelector("[role=alert]")?.textContent).toContain("Write a time as 2026-12-01");
    expect(stage.get("audit-filter-since").getAttribute("aria-invalid")).toBe("true");
    expect(shown()).toHaveLength(4);
  });

  test("reads earlier rows page by page, until there are none", async () => {
    const many = Array.from({ length: PAGE + 5 }, (_, i) => aRow({ id: PAGE + 5 - i }));
    await open({ log: many });
    expect(stage.text("audit-count")).toBe("200 rows, and earlier ones");
    await click("audit-more");
    expect(asked("log").at(-1)).toMatchObject({ before: 6, limit: PAGE });
    expect(stage.text("audit-count")).toBe("205 rows");
    expect(stage.find("audit-more")).toBeNull();
  });

  test("reads on where the list is scrolled to its end, once for each time", async () => {
    await open({ log: Array.from({ length: 2 * PAGE + 5 }, (_, i) => aRow({ id: 2 * PAGE + 5 - i })) });
    const list = document.querySelector("[role=listbox]");
    if (!list) throw new Error("there is no list");
    const scroll = async (rows: number) => {
      list.scrollTop = rows * 36 - 100;
      list.dispatchEvent(new Event("scroll"));
      await stage.pass();
    };
    await scroll(PAGE);
    expect(stage.text("audit-count")).toBe("400 rows, and earlier ones");
    stage.bridge.replies.set("log", { reply: "error", code: "busy", message: "the journal is locked", hint: null });
    await scroll(2 * PAGE);
    expect(asked("log")).toHaveLength(3);
    expect(stage.text("problem")).toContain("the journal is locked");
  });

  test("is kept while one looks elsewhere", async () => {
    await open({ log });
    await click("audit-filters-open");
    await stage.type(stage.get<HTMLInputElement>("audit-filter-pid"), "40");
    await stage.pass(250);
    await click("nav-agents");
    await click("nav-audit");
    expect(stage.get<HTMLInputElement>("audit-filter-pid").value).toBe("40");
    expect(shown()).toEqual(["2", "1"]);
  });

  test("a journal that cannot be read says why", async () => {
    await open();
    stage.bridge.replies.set("log", { reply: "error", code: "busy", message: "the journal is locked", hint: null });
    await click("audit-refresh");
    expect(stage.text("problem")).toContain("the journal is locked");
  });
});

describe("what is behind a row", () => {
  const processes = [
    aProcess({ pid: 41, parent: 40, run: 40, image: "writer", goal: "change the dentist" }),
    aProcess({ pid: 40, run: 40, image: "reader", goal: "Tidy the list" }),
  ];

  test("who asked, whose yes, what happened", async () => {
    await open({ log, processes });
    await click("audit-row");
    expect(asked("chain")).toEqual([{ command: "chain", pid: 41, seq: 2 }]);
    const [you, first, second] = [...stage.get("chain-asked").children].map((one) => one.textContent?.trim());
    expect(you).toBe("You: “Tidy the list”");
    expect(first).toBe("reader (pid 40), for “Tidy the list”");
    expect(second).toBe("writer (pid 41), for “change the dentist”");
    expect(stage.text("chain-right")).toContain("Approved in the terminal");
    expect(stage.text("chain-happened")).toContain("done");
  });

  test("rows of one call ask for its chain once", async () => {
    await open({ log, processes });
    await click("audit-row", 0);
    await click("audit-row", 1);
    expect(asked("chain")).toHaveLength(1);
    expect(stage.text("audit-facts")).toContain("approval 7: approved");
  });

  test("a row about the process itself has no chain", async () => {
    await open({ log, processes });
    await click("audit-row", 3);
    expect(asked("chain")).toEqual([]);
    expect(stage.find("audit-chain")).toBeNull();
    expect(stage.text("audit-facts")).toContain("image reader");
  });

  const authorities: [name: string, authority: Chain["authority"], says: string][] = [
    ["nothing", { capability: null, approval: null, grant: null }, "No capability covers it."],
    [
      "an expired question",
      {
        capability: null,
        grant: null,
        approval: { id: 7, state: "expired", by: null, digest: "d1", asked_ms: 0, answered_ms: null },
      },
      "The question expired; that counted as no.",
    ],
  ];

  test.each(authorities)("by %s", async (_, authority, says) => {
    await open({ log, processes });
    const give = hold("chain");
    await click("audit-row");
    const call = { pid: 41, run: 40, seq: 2, name: "fs.write", title: "Write todo.txt", asked: [], rows: [] };
    await give({ reply: "chain", ...call, authority, state: "denied", detail: "", asked_ms: 0, ended_ms: 1 });
    expect(stage.text("chain-right")).toContain(says);
    expect(stage.text("chain-happened")).toContain("denied");
  });

  test("an answer that comes late is not shown for another row", async () => {
    await open({ log, processes });
    const give = hold("chain");
    await click("audit-row", 0);
    await click("audit-row", 3);
    const call = { pid: 41, run: 40, seq: 2, name: "fs.write", title: "Write todo.txt", asked: [], rows: [] };
    const authority = { capability: null, approval: null, grant: null };
    await give({ reply: "chain", ...call, authority, state: "done", detail: "", asked_ms: 0, ended_ms: 1 });
    expect(stage.find("audit-chain")).toBeNull();
  });

  test("the arrows walk the rows, Enter goes to what is behind, Escape comes back", async () => {
    await open({ log, processes });
    const list = document.querySelector("[role=listbox]");
    if (!list) throw new Error("there is no list");
    await stage.press(list, { key: "ArrowDown" });
    await stage.press(list, { key: "Enter" });
    expect(document.activeElement).toBe(stage.get("audit-detail"));
    await stage.press(stage.get("audit-detail"), { key: "Escape" });
    expect(document.activeElement).toBe(list);
  });
});

describe("the check", () => {
  test("says that it goes on, holds nothing up, and then that the journal is whole", async () => {
    await open({ log });
    const give = hold("log_verify");
    await click("audit-verify");
    expect(stage.text("audit-verifying")).toContain("checking the journal…");
    await click("audit-row");
    expect(stage.find("audit-chain")).not.toBeNull();
    await click("nav-agents");
    await give({ reply: "verified", ok: true, rows: 12402, first_bad: null, words: "signed to the last row" });
    await click("nav-audit");
    expect(stage.text("audit-verified")).toContain("The journal is whole: 12,402 rows checked. signed to the last row");
  });

  test("one that is not waited for shows nothing, however late it ends, and can be begun anew", async () => {
    await open({ log });
    const give = hold("log_verify");
    await click("audit-verify");
    await click("audit-verify-leave");
    expect(stage.find("audit-verifying")).toBeNull();
    await give({ reply: "verified", ok: true, rows: 4, first_bad: null, words: "" });
    expect(stage.find("audit-verified")).toBeNull();
    await click("audit-verify");
    await give({ reply: "verified", ok: true, rows: 4, first_bad: null, words: "" });
    expect(stage.text("audit-verified")).toContain("4 rows checked");
  });

  test("a broken chain names the row and leads to it", async () => {
    const verified = { ok: false, rows: 2, first_bad: 3, words: "row `3` is not as it was written" };
    await open({ log, verified });
    await click("audit-verify");
    expect(stage.get("audit-verified").getAttribute("role")).toBe("alert");
    expect(stage.text("audit-verified")).toContain("The journal is not as it was written; 2 rows checked.");
    await click("audit-bad-row");
    expect(stage.text("audit-facts")).toContain("Row 3");
  });
});

describe("the export", () => {
  test("writes the whole journal, and says where it is", async () => {
    await open({ log });
    await click("audit-export");
    await click("audit-export-otel");
    expect(stage.bridge.calls).toContainEqual(["export_journal", "otel"]);
    expect(stage.text("audit-exported")).toContain("4 lines are in /home/mei/Downloads/steward-journal.otel.jsonl");
  });

  test("shows how far it is, is cancelled, and what comes of it is told", async () => {
    await open({ log });
    let end: (ended: Exported) => void = () => {};
    stage.bridge.exportJournal = () => new Promise((ends) => (end = ends));
    await click("audit-export");
    await click("audit-export-jsonl");
    stage.bridge.signal("export-progress", { lines: 1200 });
    await stage.pass();
    expect(stage.text("audit-exported")).toContain("1,200 lines written");
    expect(stage.get<HTMLButtonElement>("audit-export").disabled).toBe(true);
    await click("audit-export-cancel");
    expect(stage.bridge.count("export_stop")).toBe(1);
    end({ file: null, lines: 1200 });
    await stage.pass();
    expect(stage.text("audit-exported")).toContain("The export was cancelled. Nothing is left of it.");
  });

  test("one that fails says why", async () => {
    await open({ log });
    stage.bridge.exportJournal = async () => ({ code: "io", message: "the disk is full", hint: null });
    await click("audit-export");
    await click("audit-export-jsonl");
    expect(stage.text("problem")).toContain("the disk is full");
  });
});
