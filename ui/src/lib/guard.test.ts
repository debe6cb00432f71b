import { expect, test } from "vitest";
import { Guard, keyAnswer, type KeyAnswer, STAND_MS } from "./guard";

const keys: [name: string, press: KeyboardEventInit, answer: KeyAnswer][] = [
  ["Ctrl+Enter approves", { key: "Enter", ctrlKey: true }, "approve"],
  ["Escape denies", { key: "Escape" }, "deny"],
  ["Enter by itself is nothing", { key: "Enter" }, null],
  ["Shift+Enter is nothing", { key: "Enter", shiftKey: true }, null],
  ["Meta+Enter is nothing", { key: "Enter", metaKey: true }, null],
  ["Ctrl+Shift+Enter is nothing", { key: "Enter", ctrlKey: true, shiftKey: true }, null],
  ["Ctrl+Alt+Enter is nothing", { key: "Enter", ctrlKey: true, altKey: true }, null],
  ["a held Ctrl+Enter is nothing", { key: "Enter", ctrlKey: true, repeat: true }, null],
  ["a held Escape is nothing", { key: "Escape", repeat: true }, null],
  ["Ctrl+Escape is nothing", { key: "Escape", ctrlKey: true }, null],
  ["y is nothing", { key: "y" }, null],
  ["Space is nothing", { key: " " }, null],
  ["an Enter that ends a composition is nothing", { key: "Enter", ctrlKey: true, isComposing: true }, null],
  ["a key that WebKit marks 229 is nothing", { key: "Enter", ctrlKey: true, keyCode: 229 }, null],
  ["an Escape that drops a composition is nothing", { key: "Escape", isComposing: true }, null],
];

test.each(keys)("%s", (_, press, answer) => {
  // happy-dom does not take these two from the init.
  const event = new KeyboardEvent("keydown", press);
  for (const name of ["keyCode", "isComposing"] as const) {
    if (name in press) Object.defineProperty(event, name, { value: press[name] });
  }
  expect(keyAnswer(event)).toBe(answer);
});

type Act = ["show", string, number] | ["restart", number];
const waits: [name: string, acts: Act[], what: string, now: number, wait: number][] = [
  ["nothing shown yet", [], "7:a", 9999, STAND_MS],
  ["just shown", [["show", "7:a", 1000]], "7:a", 1000, 500],
  ["a moment before", [["show", "7:a", 1000]], "7:a", 1499, 1],
  ["half a second", [["show", "7:a", 1000]], "7:a", 1500, 0],
  ["shown again unchanged", [["show", "7:a", 1000], ["show", "7:a", 1400]], "7:a", 1500, 0],
  ["changed in between", [["show", "7:a", 1000], ["show", "7:b", 1400]], "7:b", 1500, 400],
  ["an answer to what is no longer shown", [["show", "7:a", 1000], ["show", "7:b", 1400]], "7:a", 9999, STAND_MS],
  ["back to the first", [["show", "7:a", 0], ["show", "8:a", 600], ["show", "7:a", 700]], "7:a", 1100, 100],
  ["come up again", [["show", "7:a", 1000], ["restart", 5000]], "7:a", 5100, 400],
];

test.each(waits)("wait: %s", (_, acts, what, now, wait) => {
  const guard = new Guard();
  for (const act of acts) act[0] === "show" ? guard.show(act[1], act[2]) : guard.restart(act[1]);
  expect(guard.wait(what, now)).toBe(wait);
});
