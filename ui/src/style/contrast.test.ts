import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const css = readFileSync("src/style/tokens.css", "utf8");
const tokens = new Map(
  [...css.matchAll(/--([\w-]+):\s*light-dark\((#[0-9a-f]{6}),\s*(#[0-9a-f]{6})\)/g)].map(([, name, light, dark]) => [
    name ?? "",
    { light: light ?? "", dark: dark ?? "" },
  ]),
);

/** Text on ground, at least 4.5:1; what is only a shape or an edge, at least 3:1. */
const pairs: [text: string, grounds: string[], least: number][] = [
  ["ink", ["paper", "card", "sunken", "accent-soft", "ask-soft", "bad-soft", "good-soft"], 4.5],
  ["soft", ["paper", "card", "sunken"], 4.5],
  ["accent", ["paper", "card", "accent-soft"], 4.5],
  ["on-accent", ["accent"], 4.5],
  ["ask", ["paper", "card", "ask-soft", "sunken"], 4.5],
  ["bad", ["paper", "card", "bad-soft"], 4.5],
  ["on-bad", ["bad"], 4.5],
  ["good", ["paper", "card", "good-soft"], 4.5],
  ["line-strong", ["paper", "card"], 3],
];

const rows = pairs.flatMap(([text, grounds, least]) =>
  grounds.flatMap((ground) => (["light", "dark"] as const).map((theme) => [text, ground, theme, least] as const)),
);

test.each(rows)("%s on %s, %s", (text, ground, theme, least) => {
  expect(contrast(colour(text, theme), colour(ground, theme))).toBeGreaterThanOrEqual(least);
});

test("black on white is 21:1", () => {
  expect(contrast("#000000", "#ffffff")).toBeCloseTo(21, 5);
});

function colour(name: string, theme: "light" | "dark"): string {
  const token = tokens.get(name);
  if (!token) throw new Error(`tokens.css has no colour \`--${name}\``);
  return token[theme];
}

/** WCAG 2.2, contrast ratio. */
function contrast(a: string, b: string): number {
  const [bright = 0, dim = 0] = [luminance(a), luminance(b)].sort((x, y) => y - x);
  return (bright + 0.05) / (dim + 0.05);
}

/** WCAG 2.2, relative luminance. */
function luminance(hex: string): number {
  const [r = 0, g = 0, b = 0] = [1, 3, 5].map((at) => {
    const part = Number.parseInt(hex.slice(at, at + 2), 16) / 255;
    return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
