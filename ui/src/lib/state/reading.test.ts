import { expect, test } from "vitest";
import { emptyHouse, FakeBridge } from "../bridge.fake";
import type { Reply } from "../types/Reply";
import { Reading } from "./reading.svelte";

/** A bridge that answers when told to, in any order. */
class HeldBridge extends FakeBridge {
  readonly answers: ((reply: Reply) => void)[] = [];

  override request(): Promise<Reply> {
    return new Promise((answer) => this.answers.push(answer));
  }
}

const objects = (bytes: number): Reply => ({
  reply: "objects",
  objects: [
    { id: bytes, name: null, namespace: "proc/1", kind: "text", version: 1, bytes, creator: 1, created_ms: 0, immutable: true, kept: false },
  ],
});
const command = { command: "objects", pid: 1 } as const;

test("a newer asking makes the older one void, whichever answer comes first", async () => {
  const bridge = new HeldBridge(emptyHouse());
  const reading = new Reading(bridge, "objects");
  const [older, newer] = [reading.read(command), reading.read(command)];
  bridge.answers[1]?.(objects(2));
  expect(await newer).toMatchObject(objects(2));
  bridge.answers[0]?.(objects(1));
  expect(await older).toBeNull();
  expect(reading.reply).toMatchObject(objects(2));
  expect(reading.since).toBeNull();
});

test("an error says why, and what was there stays", async () => {
  const bridge = new FakeBridge({ ...emptyHouse(), objects: { 1: [] } });
  const reading = new Reading(bridge, "objects");
  await reading.read(command);
  bridge.replies.set("objects", { reply: "error", code: "gone", message: "pid `1` has ended", hint: null });
  await reading.read(command);
  expect(reading.problem?.message).toBe("pid `1` has ended");
  expect(reading.reply?.objects).toEqual([]);
});

test("what is forgotten does not come back", async () => {
  const bridge = new HeldBridge(emptyHouse());
  const reading = new Reading(bridge, "objects");
  const asked = reading.read(command);
  reading.forget();
  bridge.answers[0]?.(objects(1));
  expect(await asked).toBeNull();
  expect([reading.reply, reading.since]).toEqual([null, null]);
});
