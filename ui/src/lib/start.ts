/** Puts a page up: with the person's language and theme from its first picture, where they come at once. */

import { type Component, mount } from "svelte";
import { connect } from "./bridge";
import { House } from "./state/house.svelte";
import { wear } from "./appearance";

/** How long a page waits for the settings before it shows itself in those of the system. */
const PATIENCE_MS = 150;

export async function start(Page: Component<{ house: House }>): Promise<void> {
  const house = new House(await connect());
  await Promise.race([house.readSettings(), new Promise((over) => setTimeout(over, PATIENCE_MS))]);
  if (house.settings) wear(house.settings);
  mount(Page, { target: document.body, props: { house } });
}
