/** Approvals in the window: what waits, and the answers that stand. */
export const approvals = {
  search: "Search approvals",
  empty: "Nothing waits for you. When an agent wants to overwrite, move or delete something, it asks here first.",
  noMatch: "No approval matches. Clear the search to see all.",
  pick: "Choose an approval to see exactly what it would do.",
  review: "Review",
  reviewSays: "You answer in a dialog of its own.",
  questions: "Questions",
  asked: (time: string) => `asked ${time}`,
  group: (image: string, pid: number) => `${image} (pid ${pid})`,
  groupCount: (n: string, one: boolean) => (one ? `${n} waits` : `${n} wait`),
  expires: (left: string) => `expires in ${left}; then it counts as no`,
  expired: "its time is over; it counts as no",
  lately: "Answered lately",
  told: (where: string, how: string) => `${where}: ${how}`,
  answeredBy: {
    window: "answered in the window",
    terminal: "answered in the terminal",
    expired: "expired; it counted as no",
    "process ended": "no longer needed: the process ended",
  },
  answeredElse: (by: string) => `answered by ${by}`,
  yes: "approved",
  no: "denied",

  shown: "What is shown",
  waiting: "Waiting",
  standing: "Standing answers",
};

/** Answers that count without asking again. */
export const standing = {
  empty: "No answer stands for good. Choose “Always…” in an approval, and it is listed here with its scope.",
  search: "Search standing answers",
  noMatch: "No standing answer matches. Clear the search to see all.",
  pick: "Choose a standing answer to see its scope and to revoke it.",
  allow: "always yes",
  deny: "always no",
  given: "Given",
  givenAt: (time: string, where: string) => `${time}, ${where}`,
  call: "Call",
  scope: "Scope",
  uses: "Used",
  times: (n: string, one: boolean) => (one ? `${n} time` : `${n} times`),
  revoked: "Revoked",
  revoke: "Revoke",
  revokeAsk: "Revoke it? From then on you are asked again.",
  revokeNo: "Keep it",
  and: ", ",
  where: {
    everywhere: "everywhere",
    workspace: (name: string) => `in the workspace ${name}`,
    path: (name: string) => `at ${name}`,
    folder: (name: string) => `in the folder ${name}`,
    image: (name: string) => `for agents of the image ${name}`,
    run: (name: string) => `in run ${name}`,
    process: (name: string) => `for pid ${name}`,
  },
};

/** “Always” in the dialog. */
export const always = {
  open: "Always…",
  title: "From now on, without asking",
  says: "It is listed under Approvals, Standing answers. You can revoke it there at any time.",
  pick: "Choose how far it reaches. The narrowest comes first.",
  chosen: (words: string) => `From now on without asking: ${words}`,
  yes: (verb: string) => `${verb}, always from now on`,
  back: "Only this once",
};
