import type { Words } from "./en";

export const approvals: Words["approvals"] = {
  search: "搜索审批",
  empty: "没有等你答复的事。智能体要覆盖、移动或删除文件时，会先来这里问你。",
  noMatch: "没有相符的审批。清空搜索可看全部。",
  pick: "选一项，看它究竟要做什么。",
  review: "查看",
  reviewSays: "在单独的对话框里答复。",
  questions: "问题",
  asked: (time) => `${time} 提出`,
  group: (image, pid) => `${image}（pid ${pid}）`,
  groupCount: (n) => `${n} 项在等`,
  expires: (left) => `${left} 后过期，过期算拒绝`,
  expired: "已过期，算拒绝",
  lately: "刚答复过的",
  told: (where, how) => `${where}：${how}`,
  answeredBy: {
    window: "已在窗口中答复",
    terminal: "已在终端中答复",
    expired: "已过期，算拒绝",
    "process ended": "不用再答复：进程已结束",
  },
  answeredElse: (by) => `已由 ${by} 答复`,
  yes: "同意",
  no: "拒绝",

  shown: "显示什么",
  waiting: "等你答复",
  standing: "长期答复",
};

export const standing: Words["standing"] = {
  empty: "没有长期有效的答复。在审批里选“以后都…”，就会连同范围列在这里。",
  search: "搜索长期答复",
  noMatch: "没有相符的长期答复。清空搜索可看全部。",
  pick: "选一条长期答复，看它的范围，也可收回。",
  allow: "一律同意",
  deny: "一律拒绝",
  given: "何时给出",
  givenAt: (time, where) => `${time}，${where}`,
  call: "调用",
  scope: "范围",
  uses: "用过",
  times: (n) => `${n} 次`,
  revoked: "已收回",
  revoke: "收回",
  revokeAsk: "要收回吗？收回后会重新问你。",
  revokeNo: "保留",
  where: {
    everywhere: "所有地方",
    workspace: (name) => `在工作区 ${name} 内`,
    folder: (name) => `在文件夹 ${name} 内`,
    image: (name) => `限镜像 ${name} 的智能体`,
    run: (name) => `限任务 ${name}`,
    process: (name) => `限 pid ${name}`,
  },
};

export const always: Words["always"] = {
  open: "以后都…",
  title: "今后不再询问",
  says: "会列在“审批”的“长期答复”里，随时可以收回。",
  pick: "选定范围，最窄的排在最前。",
  chosen: (words) => `今后不再询问：${words}`,
  yes: (verb) => `${verb}，以后都这样`,
  back: "只这一次",
};
