import { describe, expect, test } from "vitest";
import { languages } from "./index.svelte";

/** Every text of a language by its path; functions are called with stand-ins. */
function texts(words: object, path = ""): [path: string, text: string][] {
  return Object.entries(words).flatMap(([name, value]) => {
    const at = path ? `${path}.${name}` : name;
    if (typeof value === "string") return [[at, value]];
    if (typeof value === "function") return [[at, String(value("1", "2", "3"))]];
    return texts(value, at);
  });
}

const en = texts(languages.en);
const zh = texts(languages.zh);

test("every language has the same words", () => {
  expect(zh.map(([path]) => path)).toEqual(en.map(([path]) => path));
});

describe.each([
  ["en", en],
  ["zh", zh],
] as const)("%s", (_, all) => {
  test("has no empty text", () => {
    expect(all.filter(([, text]) => text.trim() === "")).toEqual([]);
  });

  test("neither shouts nor apologises", () => {
    expect(all.filter(([, text]) => /[!！]|oops|sorry|please|抱歉|哎呀/i.test(text))).toEqual([]);
  });

  test("uses every stand-in it is given", () => {
    const functions = (words: object): ((...given: string[]) => string)[] =>
      Object.values(words).flatMap((value) =>
        typeof value === "function" ? [value] : typeof value === "object" ? functions(value) : [],
      );
    for (const say of functions(all === en ? languages.en : languages.zh)) {
      expect(say("⟨first⟩", "⟨second⟩", "⟨third⟩")).toMatch(/⟨first⟩|⟨second⟩/);
    }
  });
});

test("Chinese is Chinese: no English sentence is left in it", () => {
  const names = /\b(pid|sha256)\b/g;
  const left = zh.filter(
    ([path, text]) => path !== "locale" && !/[\u4e00-\u9fff]/.test(text) && /[a-z]/i.test(text.replace(names, "")),
  );
  expect(left).toEqual([]);
});

test("Chinese has no half-width punctuation between its characters", () => {
  expect(zh.filter(([, text]) => /[\u4e00-\u9fff][,;:?](?=[\u4e00-\u9fff]|$)/.test(text))).toEqual([]);
});

test("English is in sentence case", () => {
  const titles = en.filter(([, text]) => /^[A-Z][a-z]+ [A-Z][a-z]+$/.test(text));
  expect(titles.map(([path]) => path)).toEqual([]);
});
