/** Agents: the tree of processes, and one process in full. */
export const agents = {
  search: "Search agents",
  empty: "No agent has run yet. Ask for something in Chat or with the hotkey.",
  noMatch: "No agent matches. Clear the search to see all.",
  pick: "Choose an agent to see what it does, step by step.",
  noSteps: "It took no steps.",
  ended: (n: string) => `${n} ended`,
  step: (n: string) => `step ${n}`,
  pid: (pid: number) => `pid ${pid}`,
  childOf: (pid: number) => `started by pid ${pid}`,
  background: "in the background",
  priority: (n: number) => `priority ${n}`,
  inChat: "Show in Chat",
  answer: "Answer",

  pause: "Pause",
  resume: "Resume",
  interrupt: "Interrupt",
  interruptSays: "Breaks off the step it is at; the agent goes on without it.",
  stop: "Stop",
  stopAsk: "Stop it for good?",
  stopAskWith: (n: string) => `Stop it for good, and ${n} that it started?`,
  stopYes: "Stop it",
  stopNo: "Let it be",
  message: "Message",
  messageTo: "Message to this agent",
  messageSend: "Send",
  messageBack: "Cancel",
  messageSent: "Sent. It is read when the agent next looks for messages.",
  undo: "Undo what it did",
  undoSays: "Puts its files back as they were. You see the list first and say yes or no.",
  undoStarted: (pid: number) => `The undo runs as pid ${pid}. It asks you before it changes anything.`,
  undoShow: "Show it",

  parts: { steps: "Steps", capabilities: "Capabilities", checkpoints: "Checkpoints", objects: "Objects" },
};

/** What a process may use and has used. */
export const budget = {
  title: "Budget",
  tokens: (used: string, limit: string) => `${used} of ${limit} tokens`,
  calls: (used: string, limit: string) => `${used} of ${limit} calls`,
  seconds: (used: string, limit: string) => `${used} of ${limit}`,
  money: (used: string, limit: string) => `${used} of ${limit} in money`,
  children: (used: string, limit: string) => `${used} of ${limit} children`,
  counted: (said: string) => `${said}, children counted in`,
  usedUp: (said: string) => `${said}: used up`,
  free: (n: string, one: boolean) => (one ? `${n} token, no limit` : `${n} tokens, no limit`),
};

/** What a process may do. */
export const capability = {
  empty: "It holds no capability: every call that needs one is refused.",
  stance: { allow: "may", ask: "may after your yes", deny: "may not" },
  status: { active: "counts", revoked: "revoked", spent: "uses spent", expired: "expired", ended: "ended with its process" },
  uses: (n: string, one: boolean) => (one ? `${n} use left` : `${n} uses left`),
  expires: (time: string) => `until ${time}`,
  handOnFreely: "may be handed on",
  handOn: (n: number) => `may be handed on ${n} deep`,
  from: (id: number) => `from capability ${id}`,
  issued: (by: string, time: string) => `given by ${by}, ${time}`,
  byPerson: "you",
  byProcess: (pid: string) => pid,
  number: (id: number) => `capability ${id}`,
  revoke: "Revoke",
  revokeAsk: "Revoke it, with all that was derived from it?",
  revokeNo: "Keep it",
  explain: "What would be said to a call",
  explainExample: "fs.write notes.md",
  explainGo: "Explain",
  decision: { allow: "It may.", ask: "It may after your yes.", deny: "It may not." },
  covers: "covers it",
  coversNot: "does not cover it",
};

/** Points in a process's history. */
export const checkpoint = {
  empty: "No checkpoint yet. One keeps a point in the agent's history to go back to.",
  make: "Make a checkpoint",
  name: "Name of the checkpoint",
  unnamed: (id: number) => `checkpoint ${id}`,
  at: (seq: string) => `after ${seq} calls`,
  show: "Show what is in it",
  hide: "Hide what is in it",
  outside: "Outside effects since then. Going back does not undo them:",
  outsideNone: "No outside effect since then.",
  restore: "Go back to it",
  restoreAsk: "Take the agent back to this point? What it did outside stands.",
  restoreNo: "Leave it as it is",
  restored: "The agent is back at this point.",
  fork: "Start a new agent from it",
  forked: (pid: number) => `The new agent is pid ${pid}.`,
};

/** What a process remembers. */
export const object = {
  empty: "It remembers nothing.",
  unnamed: "no name",
  version: (n: number) => `version ${n}`,
  fixed: "cannot change",
  kept: "stays when its agent ends",
  by: (pid: number) => `made by pid ${pid}`,
};
