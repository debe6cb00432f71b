/** What made-up processes may do, the points to go back to, and what they remember. */

import type { CapabilityView } from "../types/CapabilityView";
import type { CheckpointDetail } from "../types/CheckpointDetail";
import type { CheckpointView } from "../types/CheckpointView";
import type { Explanation } from "../types/Explanation";
import type { ObjectView } from "../types/ObjectView";
import { HOME, MINUTE } from "./processes";

export function aCapability(part: Partial<CapabilityView> = {}): CapabilityView {
  return {
    id: 11,
    pid: 41,
    resource: HOME,
    rights: ["read"],
    stance: "allow",
    constraints: [],
    uses_left: null,
    depth: 1,
    parent: null,
    issuer: "person",
    issued_ms: Date.now() - 10 * MINUTE,
    expires_ms: null,
    status: "active",
    ...part,
  };
}

export function capabilities(pid: number): CapabilityView[] {
  return [
    aCapability({ pid, id: 18, resource: `${HOME}/letters`, rights: ["write"], uses_left: 3, constraints: ["paths `*.txt`", "at most 64 kB each"], expires_ms: Date.now() + 50 * MINUTE, parent: 12, issuer: "pid 40", depth: 0 }),
    aCapability({ pid, id: 12, rights: ["write", "delete"], stance: "ask" }),
    aCapability({ pid }),
    aCapability({ pid, id: 9, resource: "the network", rights: ["use"], stance: "deny" }),
    aCapability({ pid, id: 8, resource: `${HOME}/drafts`, rights: ["write"], status: "revoked" }),
  ];
}

export function explanation(pid: number, what: string): Explanation {
  return {
    pid,
    what,
    decision: "ask",
    by: 12,
    words: "capability 12 covers it and asks for a yes; none denies it",
    looked_at: [
      { id: 18, words: `allow write on ${HOME}/letters`, stance: "allow", covers: false, why: "the path is not below `letters/`" },
      { id: 12, words: `ask write, delete on ${HOME}`, stance: "ask", covers: true, why: "the path is below the workspace" },
    ],
  };
}

export function aCheckpoint(part: Partial<CheckpointView> = {}): CheckpointView {
  return {
    id: 5,
    pid: 41,
    run: 41,
    seq: 3,
    label: "before the moves",
    digest: "7c1e5d6a1e7b40c28dd1f0a97c63e5b2844f19d0ab37c6e52f8810bd9a4c08aa",
    at_ms: Date.now() - 6 * MINUTE,
    ...part,
  };
}

export function checkpointDetail(checkpoint: CheckpointView): CheckpointDetail {
  return {
    checkpoint,
    facts: [
      ["state", "running"],
      ["working directory", "letters"],
      ["capabilities", "4"],
      ["tokens", "1,204"],
    ],
    outside: ["letters/dentist.txt was moved to letters/2026/2026-05-08 dentist.txt"],
  };
}

export function objects(pid: number): ObjectView[] {
  const made = { namespace: `proc/${pid}`, version: 1, creator: pid, created_ms: Date.now() - 9 * MINUTE, immutable: true, kept: false };
  return [
    { ...made, id: 31, name: "plan", kind: "plan", version: 2, bytes: 812, immutable: false },
    { ...made, id: 30, name: "dates", kind: "summary", bytes: 344, creator: 42, kept: true },
    { ...made, id: 29, name: null, kind: "tool_result", bytes: 538 },
    { ...made, id: 28, name: "goal", kind: "goal", bytes: 24 },
  ];
}
