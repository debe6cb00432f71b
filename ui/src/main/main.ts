import "../style/base.css";
import "./window.css";
import { start } from "../lib/start";
import Window from "./Window.svelte";

void start(Window);
