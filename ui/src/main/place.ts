/** The places of the window, in the order shown. */
export const places = ["chat", "agents", "approvals", "audit", "settings"] as const;
export type Place = (typeof places)[number];
