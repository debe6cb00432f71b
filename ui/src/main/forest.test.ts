import { describe, expect, test } from "vitest";
import { aProcess } from "../lib/bridge.fake";
import type { Branch } from "../lib/tree";
import type { StateView } from "../lib/types/StateView";
import { forest, type Grown, liveBelow } from "./forest";

const at = (pid: number, parent: number | null, state: StateView) => aProcess({ pid, parent, state, goal: `goal ${pid}` });

function drawn(branches: Branch<Grown>[], indent = ""): string[] {
  return branches.flatMap(({ item, children, open }) => {
    const name = "process" in item ? String(item.process.pid) : `${item.ended} ended`;
    const sign = children.length === 0 ? "" : open ? " v" : " >";
    return [indent + name + sign, ...drawn(children, `${indent}  `)];
  });
}

const everything = () => true;
const rows: [name: string, processes: ReturnType<typeof at>[], tree: string[]][] = [
  ["nothing", [], []],
  ["those that run are on top", [at(3, null, "exited"), at(2, null, "running"), at(1, null, "killed")], ["2", "2 ended >", "  3", "  1"]],
  ["children stand beneath", [at(3, 1, "paused"), at(2, 1, "exited"), at(1, null, "running")], ["1 v", "  3", "  1 ended >", "    2"]],
  ["an ended parent of one that runs stays in sight", [at(2, 1, "running"), at(1, null, "exited")], ["1 v", "  2"]],
  ["an ended tree is folded whole", [at(2, 1, "exited"), at(1, null, "exited")], ["1 ended >", "  1 >", "    1 ended >", "      2"]],
  ["a child whose parent is unknown stands by itself", [at(9, 4, "running")], ["9"]],
  ["a ring is none", [at(2, 2, "running"), at(1, 2, "running")], ["2", "1"]],
];

test.each(rows)("%s", (_, processes, tree) => expect(drawn(forest(processes, everything, false))).toEqual(tree));

test("a search shows what it finds, opened, with what stands above", () => {
  const processes = [at(4, 3, "exited"), at(3, null, "exited"), at(2, null, "running"), at(1, null, "exited")];
  const tree = forest(processes, ({ pid }) => pid === 4, true);
  expect(drawn(tree)).toEqual(["1 ended v", "  3 v", "    1 ended v", "      4"]);
});

describe("what runs beneath", () => {
  const processes = [at(5, null, "running"), at(4, 3, "exited"), at(3, 2, "running"), at(2, 1, "exited"), at(1, null, "running")];
  test.each([
    [1, 1],
    [2, 1],
    [3, 0],
    [5, 0],
  ])("%i: %i", (pid, many) => expect(liveBelow(processes, pid)).toBe(many));
});
