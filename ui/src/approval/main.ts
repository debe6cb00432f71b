import "../style/base.css";
import { start } from "../lib/start";
import Approval from "./Approval.svelte";

void start(Approval);
