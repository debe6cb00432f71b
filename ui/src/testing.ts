/** What component tests share: a mounted page over a made-up house. */

import { type Component, flushSync, mount, unmount } from "svelte";
import { vi } from "vitest";
import { FakeBridge, type FakeHouse } from "./lib/bridge.fake";
import { House } from "./lib/state/house.svelte";

export class Stage {
  readonly bridge: FakeBridge;
  readonly house: House;
  readonly #page: Record<string, unknown>;

  constructor(page: Component<{ house: House }>, made: FakeHouse) {
    document.body.replaceChildren();
    this.bridge = new FakeBridge(made);
    this.house = new House(this.bridge);
    this.#page = mount(page, { target: document.body, props: { house: this.house } });
  }

  /** Lets time pass and everything that waits for it happen. */
  async pass(ms = 0): Promise<void> {
    await vi.advanceTimersByTimeAsync(ms);
    flushSync();
  }

  find<T extends HTMLElement = HTMLElement>(testid: string): T | null {
    return document.querySelector<T>(`[data-testid="${testid}"]`);
  }

  get<T extends HTMLElement = HTMLElement>(testid: string): T {
    const found = this.find<T>(testid);
    if (!found) throw new Error(`nothing on the page is \`${testid}\``);
    return found;
  }

  text(testid: string): string {
    return (this.find(testid)?.textContent ?? "").replace(/\s+/g, " ").trim();
  }

  /** Presses a key on an element as a browser would: an Enter or a Space on a button clicks it. */
  async press(on: EventTarget, init: KeyboardEventInit): Promise<void> {
    const event = new KeyboardEvent("keydown", { bubbles: true, cancelable: true, ...init });
    for (const name of ["keyCode", "isComposing"] as const) {
      if (name in init) Object.defineProperty(event, name, { value: init[name] });
    }
    const goesOn = on.dispatchEvent(event);
    if (goesOn && init.key === "Enter" && on instanceof HTMLButtonElement && !on.disabled) on.click();
    await this.pass();
  }

  async type(into: HTMLInputElement | HTMLTextAreaElement, text: string): Promise<void> {
    into.value = text;
    into.dispatchEvent(new InputEvent("input", { bubbles: true }));
    await this.pass();
  }

  end(): void {
    void unmount(this.#page);
    flushSync();
  }
}
