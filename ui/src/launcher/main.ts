import "../style/base.css";
import { start } from "../lib/start";
import Launcher from "./Launcher.svelte";

void start(Launcher);
