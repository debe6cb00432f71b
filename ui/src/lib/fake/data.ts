/** The made-up house's contents. */

import type { ApprovalView } from "../types/ApprovalView";
import type { CapabilityView } from "../types/CapabilityView";
import type { Check } from "../types/Check";
import type { CheckpointView } from "../types/CheckpointView";
import type { FoundModel } from "../types/FoundModel";
import type { GrantView } from "../types/GrantView";
import type { LogRow } from "../types/LogRow";
import type { ModelView } from "../types/ModelView";
import type { ObjectView } from "../types/ObjectView";
import type { ProcessDetail } from "../types/ProcessDetail";
import type { ProcessView } from "../types/ProcessView";
import type { QuestionView } from "../types/QuestionView";
import type { Settings } from "../types/Settings";
import type { Verified } from "../types/Verified";
import { approvals, grants } from "./approvals";
import { log } from "./journal";
import { details, HOME, MINUTE, processes } from "./processes";
import { aCheckpoint, capabilities, objects } from "./rights";

export { aGrant, anApproval } from "./approvals";
export { aRow } from "./journal";
export { aBudget, aProcess, processRow } from "./processes";
export { aCapability, aCheckpoint } from "./rights";

export interface FakeHouse {
  processes: ProcessView[];
  details: Record<number, ProcessDetail>;
  approvals: ApprovalView[];
  questions: QuestionView[];
  grants: GrantView[];
  capabilities: CapabilityView[];
  checkpoints: CheckpointView[];
  objects: Record<number, ObjectView[]>;
  log: LogRow[];
  verified: Verified;
  checks: Check[];
  models: ModelView[];
  found: FoundModel[];
  settings: Settings;
}

export function emptyHouse(): FakeHouse {
  return {
    processes: [],
    details: {},
    approvals: [],
    questions: [],
    grants: [],
    capabilities: [],
    checkpoints: [],
    objects: {},
    log: [],
    verified: { ok: true, rows: 0, first_bad: null, words: "signed to the last row" },
    checks: [],
    models: [],
    found: [],
    settings: {
      hotkey: "Ctrl+Shift+Space",
      workspace: HOME,
      language: "system",
      theme: "system",
      model: "SmolLM2 135M",
      next_model: null,
    },
  };
}

export function detailOf(house: FakeHouse, process: ProcessView): ProcessDetail {
  const made: ProcessDetail = { process, steps: [], answer: null, ok: null, problem: null };
  return { ...(house.details[process.pid] ?? made), process };
}

export function believableHouse(): FakeHouse {
  const now = Date.now();
  const house = emptyHouse();
  house.processes = processes(now);
  house.details = details(house.processes);
  house.approvals = approvals(now);
  house.questions = [
    {
      id: 3,
      pid: 44,
      run: 44,
      text: "Two files hold sales for May. Which one counts?",
      choices: ["sales-may.csv", "sales-may (corrected).csv"],
      asked_ms: now - MINUTE,
    },
  ];
  house.grants = grants(now);
  house.capabilities = house.processes.flatMap(({ pid }) => capabilities(pid));
  house.checkpoints = [aCheckpoint(), aCheckpoint({ id: 3, label: "", seq: 1, at_ms: now - 9 * MINUTE })];
  house.objects = Object.fromEntries(house.processes.map(({ pid }) => [pid, objects(pid)]));
  house.log = log(now);
  house.verified.rows = house.log.length;
  house.checks = [
    { name: "model", state: "works", found: "SmolLM2-135M-Instruct Q4_1, 98,362,432 bytes, SHA-256 as listed", hint: null },
    { name: "workspace", state: "works", found: `${HOME} can be read and written`, hint: null },
    {
      name: "hotkey",
      state: "limited",
      found: "the session is Wayland, where a program cannot take a key for itself",
      hint: "Bind `steward --toggle` to a key in the system's settings.",
    },
    { name: "sandbox", state: "missing", found: "`bwrap` is not installed", hint: "Install the package bubblewrap." },
  ];
  house.models = [
    {
      name: "SmolLM2 135M",
      licence: "Apache-2.0",
      bytes: 98_362_432,
      sha256: "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
      context: 8192,
      memory_mib: 320,
      good_for: "Short summaries and simple file work; quick on any machine.",
      path: "/home/mei/.local/share/steward/models/SmolLM2-135M-Instruct.Q4_1.gguf",
      fitness: {
        fits: "fits",
        why: "fits: needs 333 MiB with a context of 8192 tokens, 9120 MiB are left",
        kind: "llama, 135 M weights, Q4_1",
      },
      is_default: true,
    },
  ];
  house.found = [
    {
      name: "ollama:llama3.2:1b",
      path: "/home/mei/.ollama/models/blobs/sha256-74701a8c35f6c8d9a4b91f3f3497643001d63e0c7a84e085bed452548fa88d45",
      bytes: 1_321_082_688,
      keeper: "Ollama",
      licence: null,
      fitness: {
        fits: "tight",
        why: "tight: needs 1448 MiB with a context of 4096 tokens, 1800 MiB are left",
        kind: "llama, 1236 M weights, Q8_0",
      },
    },
  ];
  return house;
}

