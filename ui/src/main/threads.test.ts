import { expect, test } from "vitest";
import { aProcess } from "../lib/bridge.fake";
import { keepLink, type Links, MAX_LINKS, readLinks, threadsOf } from "./threads";

const rows: [name: string, runs: [pid: number, parent?: number][], links: Links, threads: Record<number, number[]>][] = [
  ["single requests", [[2], [1]], {}, { 2: [2], 1: [1] }],
  ["a follow-up joins", [[3], [2], [1]], { 3: 1 }, { 1: [1, 3], 2: [2] }],
  ["follow-ups of follow-ups", [[3], [2], [1]], { 3: 2, 2: 1 }, { 1: [1, 2, 3] }],
  ["children are not chats", [[2, 1], [1]], {}, { 1: [1] }],
  ["a link to what is gone", [[3]], { 3: 1 }, { 3: [3] }],
  ["a ring of links ends", [[2], [1]], { 2: 1, 1: 2 }, { 1: [1, 2] }],
];

test.each(rows)("%s", (_, runs, links, threads) => {
  const processes = runs.map(([pid, parent]) => aProcess({ pid, run: parent ?? pid, parent: parent ?? null }));
  const got = threadsOf(processes, links).map(({ id, runs }) => [id, runs.map(({ pid }) => pid)]);
  expect(Object.fromEntries(got)).toEqual(threads);
});

test("the chat last spoken in is first", () => {
  const processes = [4, 3, 2, 1].map((pid) => aProcess({ pid, run: pid }));
  expect(threadsOf(processes, { 4: 1 }).map(({ id }) => id)).toEqual([1, 3, 2]);
});

test("links are kept, bounded, and read back", () => {
  let kept = "";
  const links: Links = {};
  for (let run = 2; run < MAX_LINKS + 10; run++) keepLink({ setItem: (_, value) => (kept = value) }, links, run, run - 1);
  expect(Object.keys(links)).toHaveLength(MAX_LINKS);
  expect(readLinks({ getItem: () => kept })).toEqual(links);
});

test.each([["nonsense"], ["[]"], ["null"], ['{"3":"x","4":9,"5":1.5}']])("reads `%s` as nothing", (kept) => {
  expect(readLinks({ getItem: () => kept })).toEqual({});
});
