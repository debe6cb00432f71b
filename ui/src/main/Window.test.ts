import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { aProcess, emptyHouse, type FakeHouse } from "../lib/bridge.fake";
import { believableHouse } from "../lib/fake/data";
import { speak } from "../lib/i18n/index.svelte";
import type { FitnessView } from "../lib/types/FitnessView";
import { Stage } from "../testing";
import Window from "./Window.svelte";

let stage: Stage;

beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
  // happy-dom has no `<dialog>` that opens.
  HTMLDialogElement.prototype.showModal = function () {
    this.open = true;
  };
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
}

async function go(place: string) {
  stage.get(`nav-${place}`).click();
  await stage.pass();
}

const all = (testid: string) => [...document.querySelectorAll<HTMLElement>(`[data-testid="${testid}"]`)];
const titles = (testid: string) => all(testid).map((row) => row.querySelector("bdi")?.textContent);
const calls = (name: string) => stage.bridge.calls.filter(([called]) => called === name).map(([, carried]) => carried);
const ended = { state: "exited", ended_ms: 1 } as const;

describe("empty places say what to do", () => {
  test.each([
    ["chat", "No chats yet."],
    ["agents", "No agent has run yet."],
    ["approvals", "Nothing waits for you."],
    ["audit", "The journal is empty."],
  ])("%s", async (place, says) => {
    await open();
    await go(place);
    expect(document.querySelector(".empty")?.textContent).toContain(says);
  });
});

describe("agents", () => {
  const processes = [
    aProcess({ pid: 3, run: 3, goal: "Tidy the letters" }),
    aProcess({ pid: 2, run: 2, goal: "Weekly chart", ...ended, undoable: true }),
    aProcess({ pid: 1, run: 1, goal: "When does the lease end?", ...ended }),
  ];

  /** Goes to the agents and unfolds those that have ended. */
  async function unfold() {
    await go("agents");
    const tree = document.querySelector("[role=tree]");
    if (!tree) throw new Error("there is no tree");
    for (const key of ["End", "ArrowRight"]) await stage.press(tree, { key });
  }

  test("are searched and walked with the arrows from the search field", async () => {
    await open({ processes });
    await go("agents");
    const search = document.querySelector<HTMLInputElement>("[data-search]");
    if (!search) throw new Error("no search field");
    await stage.press(search, { key: "ArrowDown" });
    expect(document.querySelector("[aria-selected=true] bdi")?.textContent).toBe("Tidy the letters");
    await stage.type(search, "lease end");
    expect(titles("agent-row")).toEqual(["When does the lease end?"]);
    await stage.type(search, "nothing like it");
    expect(document.querySelector(".empty")?.textContent).toContain("No agent matches.");
  });

  test("those that run are counted and can be stopped", async () => {
    await open({ processes });
    expect(stage.text("agents-count")).toBe("1");
    await go("agents");
    all("agent-row")[0]?.click();
    await stage.pass();
    stage.get("stop-button").click();
    await stage.pass();
    stage.get("stop-button-yes").click();
    await stage.pass();
    expect(calls("signal")).toEqual([{ command: "signal", pid: 3, signal: "kill" }]);
    expect(stage.find("agents-count")).toBeNull();
    expect(stage.text("agent-state")).toBe("stopped");
  });

  test("undo is offered only where something can be undone, and leads to its process", async () => {
    await open({ processes });
    await unfold();
    all("agent-row")[2]?.click();
    await stage.pass();
    expect(stage.find("undo-button")).toBeNull();
    all("agent-row")[1]?.click();
    await stage.pass();
    stage.get("undo-button").click();
    await stage.pass();
    expect(calls("undo")).toEqual([{ command: "undo", run: 2 }]);
    expect(stage.text("undo-started")).toBe("The undo runs as pid 4. It asks you before it changes anything.");
  });

  test("a step says how it stands in words, too", async () => {
    const step = { seq: 1, name: "fs.delete", title: "Delete a.txt", detail: "you said no", elapsed_ms: 10 };
    await open({ processes });
    stage.bridge.tell({ type: "step", pid: 3, run: 3, step: { ...step, state: "denied" } });
    await go("agents");
    all("agent-row")[0]?.click();
    await stage.pass();
    expect(stage.text("step-row")).toBe("denied Delete a.txt you said no 0.0 s");
  });

  test("ten thousand are a few rows on the page", async () => {
    const many = Array.from({ length: 10_000 }, (_, i) => aProcess({ pid: 10_000 - i, run: 10_000 - i, ...ended }));
    await open({ processes: many });
    await unfold();
    expect(all("agent-row").length).toBeLessThan(40);
    expect(all("agent-row")[0]?.getAttribute("aria-setsize")).toBe("10000");
  });
});

describe("chat", () => {
  test("a follow-up goes on from the run before, and joins its chat", async () => {
    await open({ processes: [aProcess({ pid: 1, run: 1, goal: "When?", ...ended })] });
    all("chat-row")[0]?.click();
    await stage.pass();
    const input = stage.get<HTMLTextAreaElement>("chat-input");
    await stage.type(input, "And where?");
    await stage.press(input, { key: "Enter" });
    expect(calls("submit")).toEqual([{ command: "submit", request: "And where?", workspace: null, after: 1 }]);
    expect(all("chat-run").map((run) => run.dataset["pid"])).toEqual(["1", "2"]);
    expect(titles("chat-row")).toEqual(["When?"]);
    expect(input.value).toBe("");
  });

  test("a new chat follows nothing", async () => {
    await open({ processes: [aProcess({ pid: 1, run: 1, goal: "When?", ...ended })] });
    const input = stage.get<HTMLTextAreaElement>("chat-input");
    await stage.type(input, "Where?");
    await stage.press(input, { key: "Enter", keyCode: 229 });
    await stage.press(input, { key: "Enter", shiftKey: true });
    expect(calls("submit")).toEqual([]);
    await stage.press(input, { key: "Enter" });
    expect(calls("submit")).toMatchObject([{ request: "Where?", after: null }]);
    expect(titles("chat-row")).toEqual(["Where?", "When?"]);
  });

  test("a draft is still there after a look elsewhere", async () => {
    await open();
    await stage.type(stage.get<HTMLTextAreaElement>("chat-input"), "half a thou");
    await go("audit");
    await go("chat");
    expect(stage.get<HTMLTextAreaElement>("chat-input").value).toBe("half a thou");
  });

  test("the launcher's Tab opens its chat", async () => {
    await open({ processes: [aProcess({ pid: 5, run: 5, goal: "When?" })] });
    await go("settings");
    stage.bridge.signal("main-open", { pid: 5 });
    await stage.pass();
    expect(all("chat-run").map((run) => run.dataset["pid"])).toEqual(["5"]);
  });
});

describe("settings", () => {
  test("a language takes effect at once", async () => {
    await open();
    await go("settings");
    stage.get("settings-language").querySelector<HTMLInputElement>("[value=zh]")?.click();
    await stage.pass();
    expect(calls("change_settings")).toMatchObject([{ language: "zh", theme: null, hotkey: null }]);
    expect(stage.text("nav-settings")).toBe("设置");
    expect(document.documentElement.lang).toBe("zh-Hans");
  });

  test("a theme takes effect at once", async () => {
    await open();
    await go("settings");
    stage.get("settings-theme").querySelector<HTMLInputElement>("[value=dark]")?.click();
    await stage.pass();
    expect(document.documentElement.dataset["theme"]).toBe("dark");
  });

  test("a model that is here can be chosen, one that cannot be run cannot", async () => {
    const { models, found } = believableHouse();
    const broken: FitnessView = { fits: "unusable", why: "the architecture `mamba` is not supported", kind: "" };
    const others = [...found, { ...found[0]!, name: "mamba.gguf", fitness: broken }];
    await open({ models, found: others });
    await go("settings");
    const rows = all("model-found");
    expect(rows.map((row) => row.querySelector("[data-testid=model-use]") !== null)).toEqual([true, false]);
    expect(rows[1]?.textContent).toContain("the architecture mamba is not supported");
    rows[0]?.querySelector<HTMLButtonElement>("[data-testid=model-use]")?.click();
    await stage.pass();
    expect(calls("change_settings")).toMatchObject([{ model: "ollama:llama3.2:1b", theme: null }]);
    expect(all("model-found")[0]?.textContent).toContain("from the next start");
  });

  test("a hotkey that is taken says so and stays editable", async () => {
    await open();
    await go("settings");
    const message = "the hotkey `Ctrl+Space` is taken by another program";
    stage.bridge.replies.set("change_settings", { reply: "error", code: "taken", message, hint: "Choose another one." });
    const field = stage.get<HTMLInputElement>("settings-hotkey");
    await stage.type(field, "Ctrl+Space");
    field.form?.requestSubmit();
    await stage.pass();
    expect(stage.text("problem")).toContain("the hotkey Ctrl+Space is taken by another program Choose another one.");
    expect(field.value).toBe("Ctrl+Space");
  });
});

test("? lists the keys, but not while one is writing", async () => {
  await open();
  await stage.press(stage.get("chat-input"), { key: "?" });
  expect(stage.get<HTMLDialogElement>("keys").open).toBe(false);
  await stage.press(document.body, { key: "?" });
  expect(stage.get<HTMLDialogElement>("keys").open).toBe(true);
  expect(stage.text("keys")).toContain("Ctrl+Shift+Space show or hide the launcher");
});

test("Ctrl and a figure go to a place", async () => {
  await open();
  await stage.press(document.body, { key: "4", ctrlKey: true });
  expect(stage.get("nav-audit").getAttribute("aria-current")).toBe("page");
  expect(document.activeElement).toBe(document.querySelector("[data-search]"));
  await stage.press(document.body, { key: "1", ctrlKey: true });
  expect(document.activeElement).toBe(stage.get("chat-input"));
});

test("what could not be read says why and can be tried again", async () => {
  stage = new Stage(Window, emptyHouse());
  stage.bridge.replies.set("processes", { reply: "error", code: "busy", message: "the journal is locked", hint: null });
  await stage.pass();
  expect(stage.text("problem")).toContain("the journal is locked");
  stage.bridge.replies.clear();
  stage.get("problem").querySelector("button")?.click();
  await stage.pass();
  expect(stage.find("problem")).toBeNull();
});
