import "../style/base.css";
import { mount } from "svelte";
import { connect } from "../lib/bridge";
import { wear } from "../lib/appearance";
import { House } from "../lib/state/house.svelte";
import Launcher from "./Launcher.svelte";

const house = new House(await connect());
await house.readSettings();
if (house.settings) wear(house.settings);
mount(Launcher, { target: document.body, props: { house } });
