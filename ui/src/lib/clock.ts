import { createSubscriber } from "svelte/reactivity";

const tenths = ticking(100);
const seconds = ticking(1000);

/** The time in Unix milliseconds. It ticks only while something on the page reads it. */
export function now(): number {
  tenths();
  return Date.now();
}

/** The same, ten times less often: for what is told in seconds or minutes. */
export function nowish(): number {
  seconds();
  return Date.now();
}

function ticking(ms: number) {
  return createSubscriber((update) => {
    const timer = setInterval(update, ms);
    return () => clearInterval(timer);
  });
}
