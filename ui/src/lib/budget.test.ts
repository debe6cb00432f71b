import { expect, test } from "vitest";
import { part, shares, tokensOf } from "./budget";
import { aBudget, aProcess } from "./fake/data";
import { en } from "./i18n/en";
import { zh } from "./i18n/zh";

const budget = aBudget(
  { tokens: 4000, calls: 3, seconds: 900, money_micros: 1_500_000, children: 0 },
  { tokens: 1200, calls: 3, seconds: 65, money_micros: 250_000 },
);

test("every limit is told in its unit, tokens first", () => {
  expect(shares(budget, en).map(({ words }) => words)).toEqual([
    "1,200 of 4,000 tokens",
    "3 of 3 calls",
    "1 min 5 s of 15 min 0 s",
    "0.25 of 1.50 in money",
    "0 of 0 children",
  ]);
  expect(shares(budget, zh)[0]?.words).toBe("已用 1,200 个 token，上限 4,000");
});

test("how much of each is used; a limit of nothing is used up, and none is more than all", () => {
  expect(shares(budget, en).map(part)).toEqual([0.3, 1, 65 / 900, 0.25 / 1.5, 1]);
  expect(shares(aBudget({ tokens: 100 }, { tokens: 130 }), en).map(part)).toEqual([1]);
});

test("what has no limit has no bar", () => {
  expect(shares(aBudget(), en)).toEqual([]);
  expect(tokensOf(aProcess({ tokens: 1 }), en)).toBe("1 token, no limit");
  expect(tokensOf(aProcess({ budget }), en)).toBe("1,200 of 4,000 tokens");
});
