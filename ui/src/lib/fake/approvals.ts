/** Made-up approvals, and answers that stand for good. */

import type { ApprovalView } from "../types/ApprovalView";
import type { GrantView } from "../types/GrantView";
import { HOME, MINUTE } from "./processes";

export function anApproval(part: Partial<ApprovalView> = {}): ApprovalView {
  return {
    id: 7,
    pid: 41,
    run: 41,
    image: "writer",
    goal: "in todo.txt change dentist to doctor",
    action: "fs.write",
    effect: "overwrite",
    path: `${HOME}/todo.txt`,
    relative: "todo.txt",
    target: null,
    bytes_before: 51,
    bytes_after: 50,
    sha256: "9f3c5d6a1e7b40c28dd1f0a97c63e5b2844f19d0ab37c6e52f8810bd9a4c08e1",
    diff: [
      { kind: "same", text: "buy milk" },
      { kind: "removed", text: "call the dentist" },
      { kind: "added", text: "call the doctor" },
      { kind: "same", text: "return library books" },
    ],
    diff_cut: false,
    lines_changed: 1,
    lines_total: 3,
    risks: [],
    undoable: true,
    items: [],
    digest: "d1",
    asked_ms: Date.now() - 2 * MINUTE,
    expires_ms: null,
    group: null,
    scopes: [],
    ...part,
  };
}

export function approvals(now: number): ApprovalView[] {
  return [
    anApproval({
      asked_ms: now - 4 * MINUTE,
      expires_ms: now + 12 * MINUTE,
      group: 1,
      scopes: [
        { id: "path", words: "overwriting todo.txt in this run" },
        { id: "folder", words: "overwriting any file in ~/Steward, in this run" },
        { id: "image", words: "overwriting any file in ~/Steward, for every agent of the image writer" },
      ],
    }),
    anApproval({
      id: 8,
      pid: 43,
      run: 43,
      image: "reader",
      goal: "Summarise notes.md and save it as summary.md",
      effect: "create",
      path: `${HOME}/summary.md`,
      relative: "summary.md",
      bytes_before: null,
      bytes_after: 184,
      sha256: "3e9ac10bd7f24865aa01c94b0d52e6f7718bb03cf6a94d2e85c1170f3ab9d6c2",
      diff: [
        { kind: "added", text: "# Summary" },
        { kind: "added", text: "" },
        { kind: "added", text: "- The lease for Mill Lane 7 ends on 30 September 2027." },
        { kind: "added", text: "- Notice must be given three months before." },
        { kind: "added", text: "- 押金为两个月房租，退租后三十天内退还。" },
      ],
      lines_changed: 5,
      lines_total: 5,
      digest: "d2",
      asked_ms: now - 3 * MINUTE,
    }),
    anApproval({
      id: 9,
      group: 1,
      goal: "clean up the letters folder",
      action: "fs.delete",
      effect: "delete",
      path: `${HOME}/letters/.archive/2019/a folder with a rather long name/correspondence with the housing office (final, corrected).txt`,
      relative: "letters/.archive/2019/a folder with a rather long name/correspondence with the housing office (final, corrected).txt",
      bytes_before: 48_213,
      bytes_after: null,
      sha256: null,
      diff: [
        { kind: "removed", text: "Dear Sir or Madam," },
        { kind: "removed", text: "I write about the flat at Mill Lane 7 …" },
        { kind: "gap", text: "412 lines" },
        { kind: "removed", text: "evil\\u{202e}txt.exe" },
      ],
      diff_cut: true,
      lines_changed: 414,
      lines_total: 414,
      risks: ["hidden", "invisible"],
      undoable: false,
      digest: "d3",
      asked_ms: now - MINUTE,
    }),
    anApproval({
      id: 10,
      goal: "undo run 39",
      action: "fs.undo",
      effect: "undo",
      run: 39,
      path: HOME,
      relative: "",
      bytes_before: null,
      bytes_after: null,
      sha256: null,
      diff: [],
      lines_changed: 0,
      lines_total: 0,
      items: ["delete summary.md (366 bytes, made by the run)", "restore notes.md (1,204 bytes)"],
      digest: "d4",
      asked_ms: now,
    }),
  ];
}


export function aGrant(part: Partial<GrantView> = {}): GrantView {
  return {
    id: 4,
    action: "fs.write",
    scope: { workspace: HOME, folder: "letters" },
    words: "writing new files in letters/, without asking",
    allow: true,
    issued_ms: Date.now() - 26 * 60 * MINUTE,
    by: "window",
    uses: 12,
    revoked_ms: null,
    ...part,
  };
}

export function grants(now: number): GrantView[] {
  return [
    aGrant(),
    aGrant({
      id: 3,
      action: "fs.delete",
      scope: { workspace: HOME, image: "reader" },
      words: "deleting anything in ~/Steward, for agents of the image reader",
      allow: false,
      uses: 1,
      by: "terminal",
      issued_ms: now - 50 * 60 * MINUTE,
    }),
    aGrant({
      id: 2,
      action: "fs.move",
      scope: { workspace: HOME, folder: "notes", run: 39 },
      words: "moving files in notes/, in run 39",
      uses: 3,
      issued_ms: now - 90 * 60 * MINUTE,
      revoked_ms: now - 80 * 60 * MINUTE,
    }),
  ];
}
