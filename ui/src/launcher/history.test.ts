import { expect, test } from "vitest";
import { History, MAX_REQUESTS } from "./history";

function store(kept: string | null = null) {
  const state = { kept };
  return { state, getItem: () => state.kept, setItem: (_: string, value: string) => void (state.kept = value) };
}

test("walks back to the oldest and forth to the draft", () => {
  const history = new History(store());
  for (const request of ["one", "two", "three"]) history.add(request);
  const walked = [
    history.back("dra"),
    history.back("three"),
    history.back("two"),
    history.back("one"),
    history.forth(),
    history.forth(),
    history.forth(),
    history.forth(),
  ];
  expect(walked).toEqual(["three", "two", "one", null, "two", "three", "dra", null]);
});

test("what is shown already is not offered first", () => {
  const history = new History(store());
  for (const request of ["one", "two"]) history.add(request);
  expect(history.back("two")).toBe("one");
});

test("said again, it is kept once and is the newest", () => {
  const kept = store();
  const history = new History(kept);
  for (const request of ["one", "two", "one"]) history.add(request);
  expect(kept.state.kept).toBe('["one","two"]');
});

test("is bounded", () => {
  const kept = store();
  const history = new History(kept);
  for (let i = 0; i < MAX_REQUESTS + 5; i++) history.add(`request ${i}`);
  expect(JSON.parse(kept.state.kept ?? "")).toHaveLength(MAX_REQUESTS);
  expect(new History(kept).back("")).toBe(`request ${MAX_REQUESTS + 4}`);
});

test.each([["nonsense"], ['{"a":1}'], ["[1,null,{}]"], [JSON.stringify(["x".repeat(5000)])]])(
  "reads `%s` as nothing",
  (kept) => {
    expect(new History(store(kept)).back("")).toBeNull();
  },
);

test("a store that is full costs only the memory of it", () => {
  const full = {
    getItem: () => null,
    setItem: () => {
      throw new Error("full");
    },
  };
  const history = new History(full);
  history.add("one");
  expect(history.back("")).toBe("one");
});
