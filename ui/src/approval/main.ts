import "../style/base.css";
import { mount } from "svelte";
import { wear } from "../lib/appearance";
import { connect } from "../lib/bridge";
import { House } from "../lib/state/house.svelte";
import Approval from "./Approval.svelte";

const house = new House(await connect());
await house.readSettings();
if (house.settings) wear(house.settings);
mount(Approval, { target: document.body, props: { house } });
