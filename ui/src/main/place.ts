/** The places of the window, in the order shown. */
export const places = ["chat", "agents", "approvals", "journal", "settings"] as const;
export type Place = (typeof places)[number];
