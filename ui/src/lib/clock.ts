import { createSubscriber } from "svelte/reactivity";

const TICK_MS = 100;

const tick = createSubscriber((update) => {
  const timer = setInterval(update, TICK_MS);
  return () => clearInterval(timer);
});

/** The time in Unix milliseconds. It ticks only while something on the page reads it. */
export function now(): number {
  tick();
  return Date.now();
}
