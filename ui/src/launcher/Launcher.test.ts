import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { anApproval, emptyHouse } from "../lib/bridge.fake";
import { speak } from "../lib/i18n/index.svelte";
import { Stage } from "../testing";
import Launcher from "./Launcher.svelte";

let stage: Stage;

beforeEach(async () => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance", "Date"] });
  localStorage.clear();
  speak("en");
  stage = new Stage(Launcher, emptyHouse());
  await stage.pass();
});
afterEach(() => {
  stage.end();
  vi.useRealTimers();
});

const input = () => stage.get<HTMLInputElement>("launcher-input");
const submits = () => stage.bridge.calls.filter(([name]) => name === "submit").map(([, carried]) => carried);
const ENTER = { key: "Enter" };

async function ask(request: string) {
  await stage.type(input(), request);
  await stage.press(input(), ENTER);
}

async function tell(...events: Parameters<Stage["bridge"]["tell"]>[0][]) {
  for (const event of events) stage.bridge.tell(event);
  await stage.pass();
}

test("is ready for the first key", () => {
  expect(document.activeElement).toBe(input());
});

test("Enter submits in the default workspace", async () => {
  await ask("  When does the lease end? ");
  expect(submits()).toEqual([{ command: "submit", request: "When does the lease end?", workspace: null, after: null }]);
});

const quiet: [name: string, text: string, press: KeyboardEventInit][] = [
  ["an Enter that ends a composition", "shou", { ...ENTER, isComposing: true }],
  ["the same as WebKit tells it", "shou", { ...ENTER, keyCode: 229 }],
  ["a held Enter", "x", { ...ENTER, repeat: true }],
  ["Ctrl+Enter", "x", { ...ENTER, ctrlKey: true }],
  ["Shift+Enter", "x", { ...ENTER, shiftKey: true }],
  ["Enter on nothing", "   ", ENTER],
];

test.each(quiet)("%s sends nothing", async (_, text, press) => {
  await stage.type(input(), text);
  await stage.press(input(), press);
  expect(submits()).toEqual([]);
});

test("the answer grows in place, then stands whole", async () => {
  await ask("When?");
  await tell({ type: "token", pid: 1, run: 1, text: "On **30" });
  expect(stage.text("launcher-answer")).toBe("On **30");
  expect(stage.get("launcher-answer").getAttribute("aria-busy")).toBe("true");
  await tell(
    { type: "token", pid: 1, run: 1, text: " September**" },
    { type: "answer", pid: 1, run: 1, text: "On **30 September**." },
    { type: "done", pid: 1, run: 1, ok: true, error: null },
  );
  expect(stage.text("launcher-answer")).toBe("On 30 September.");
  expect(stage.get("launcher-answer").getAttribute("aria-busy")).toBe("false");
  expect(stage.find("launcher-stop")).toBeNull();
});

test("a sign of life after 300 ms, a reason after 3 s", async () => {
  await ask("When?");
  await stage.pass(200);
  expect(stage.find("patience")).toBeNull();
  await stage.pass(200);
  expect(stage.text("patience")).toBe("working…");
  await stage.pass(3000);
  expect(stage.text("patience")).toContain("The model is reading the request.");
  await tell({ type: "model", name: "m", ready: false, error: null, percent: null });
  expect(stage.text("patience")).toContain("The model is still being loaded.");
  await tell({ type: "model", name: "m", ready: false, error: null, percent: 40 });
  expect(stage.text("launcher-model")).toContain("loading the model 40 %");
});

test("a waiting approval is a row, and Enter opens its dialog", async () => {
  await ask("Save it");
  await tell({ type: "approval", ...anApproval({ pid: 1, run: 1 }) });
  expect(stage.text("launcher-waiting")).toContain("Waiting for your answer Overwrite todo.txt?");
  await stage.press(input(), ENTER);
  expect(stage.bridge.calls.at(-1)).toEqual(["open_approval", 7]);
  expect(submits()).toHaveLength(1);
});

test("another run's approval is not shown here", async () => {
  await ask("Save it");
  await tell({ type: "approval", ...anApproval({ pid: 99, run: 99 }) });
  expect(stage.find("launcher-waiting")).toBeNull();
});

test("Escape hides, and what was asked is still there", async () => {
  await ask("When?");
  await stage.press(input(), { key: "Escape" });
  expect(stage.bridge.count("launcher_hide")).toBe(1);
  expect(stage.bridge.count("signal")).toBe(0);
  await tell({ type: "answer", pid: 1, run: 1, text: "Soon." }, { type: "done", pid: 1, run: 1, ok: true, error: null });
  stage.bridge.signal("launcher-shown", null);
  await stage.pass();
  expect([input().value, stage.text("launcher-answer")]).toEqual(["When?", "Soon."]);
});

test("typing another request puts the last result aside; taking it back brings it again", async () => {
  await ask("When?");
  await tell({ type: "answer", pid: 1, run: 1, text: "Soon." }, { type: "done", pid: 1, run: 1, ok: true, error: null });
  await stage.type(input(), "Wh");
  expect(stage.find("launcher-answer")).toBeNull();
  await stage.type(input(), "");
  expect(stage.text("launcher-answer")).toBe("Soon.");
});

test("an unsent draft is kept", async () => {
  await stage.type(input(), "half a thou");
  await stage.press(input(), { key: "Escape" });
  stage.bridge.signal("launcher-shown", null);
  await stage.pass();
  expect(input().value).toBe("half a thou");
});

test("Tab goes on in chat", async () => {
  await ask("When?");
  await stage.press(input(), { key: "Tab" });
  expect(stage.bridge.calls).toContainEqual(["open_main", 1]);
});

test("Ctrl+. and the button stop it", async () => {
  await ask("When?");
  await stage.press(input(), { key: ".", ctrlKey: true });
  expect(stage.bridge.calls).toContainEqual(["signal", { command: "signal", pid: 1, signal: "kill" }]);
  expect(stage.find("launcher-stop")).toBeNull();
});

test("arrows walk earlier requests, kept between starts", async () => {
  await ask("one");
  await ask("two");
  stage.end();
  stage = new Stage(Launcher, emptyHouse());
  await stage.pass();
  const seen: string[] = [];
  for (const key of ["ArrowUp", "ArrowUp", "ArrowDown", "ArrowDown"]) {
    await stage.press(input(), { key });
    seen.push(input().value);
  }
  expect(seen).toEqual(["two", "one", "two", ""]);
});

test("a request that is refused says why and can be tried again", async () => {
  stage.bridge.replies.set("submit", {
    reply: "error",
    code: "no_model",
    message: "the model file `smollm2.gguf` is missing",
    hint: "Run `steward models get`.",
  });
  await ask("When?");
  expect(stage.text("problem")).toContain("the model file smollm2.gguf is missing Run steward models get.");
  stage.bridge.replies.clear();
  stage.get("problem").querySelector("button")?.click();
  await stage.pass();
  expect(submits()).toHaveLength(2);
  expect(stage.find("problem")).toBeNull();
});
