/**
 * An answer's Markdown as a tree of a few known shapes.
 *
 * Answers are untrusted. They are parsed to tokens and turned into this tree, which a component
 * writes out as elements and text: no HTML is ever made from them, so there is nothing to sanitise.
 * HTML in an answer stays text, a link becomes its words with its address beside them, and a picture
 * becomes its description: nothing is fetched and nothing navigates.
 */

import { Lexer, type Token, type Tokens } from "marked";

export type Inline =
  | { kind: "text"; text: string }
  | { kind: "code"; text: string }
  | { kind: "break" }
  | { kind: "strong"; inlines: Inline[] }
  | { kind: "emphasis"; inlines: Inline[] }
  | { kind: "struck"; inlines: Inline[] }
  | { kind: "link"; inlines: Inline[]; address: string };

export type Block =
  | { kind: "paragraph"; inlines: Inline[] }
  | { kind: "heading"; depth: number; inlines: Inline[] }
  | { kind: "code"; language: string; text: string }
  | { kind: "quote"; blocks: Block[] }
  | { kind: "list"; ordered: boolean; start: number; items: Block[][] }
  | { kind: "table"; head: Inline[][]; rows: Inline[][][] }
  | { kind: "rule" };

/** Longer answers are shown as plain text. */
export const MAX_MARKDOWN = 50_000;
/** Deeper nesting is shown as plain text. */
const MAX_DEPTH = 12;

export function parse(markdown: string): Block[] {
  if (markdown.length > MAX_MARKDOWN) return plain(markdown);
  try {
    return blocks(new Lexer({ gfm: true, breaks: true }).lex(markdown), 0);
  } catch {
    return plain(markdown);
  }
}

function plain(text: string): Block[] {
  return [{ kind: "paragraph", inlines: [leaf(text)] }];
}

function blocks(tokens: Token[], depth: number): Block[] {
  if (depth > MAX_DEPTH) return plain(tokens.map(({ raw }) => raw).join(""));
  return tokens.flatMap((token) => block(token as Tokens.Generic, depth));
}

function block(token: Tokens.Generic, depth: number): Block[] {
  switch (token.type) {
    case "space":
    case "def":
      return [];
    case "hr":
      return [{ kind: "rule" }];
    case "heading":
      return [{ kind: "heading", depth: token["depth"], inlines: inlines(token.tokens, depth) }];
    case "code":
      return [{ kind: "code", language: token["lang"] ?? "", text: orderly(token["text"]) }];
    case "blockquote":
      return [{ kind: "quote", blocks: blocks(token.tokens ?? [], depth + 1) }];
    case "list": {
      const list = token as Tokens.List;
      const items = list.items.map((item) => blocks(item.tokens, depth + 1));
      return [{ kind: "list", ordered: list.ordered, start: Number(list.start) || 1, items }];
    }
    case "table": {
      const table = token as Tokens.Table;
      const cell = ({ tokens }: Tokens.TableCell) => inlines(tokens, depth);
      return [{ kind: "table", head: table.header.map(cell), rows: table.rows.map((row) => row.map(cell)) }];
    }
    case "paragraph":
    case "text":
      return [{ kind: "paragraph", inlines: token.tokens ? inlines(token.tokens, depth) : text(token) }];
    default:
      return [{ kind: "paragraph", inlines: [leaf(token.raw.trimEnd())] }];
  }
}

function inlines(tokens: Token[] | undefined, depth: number): Inline[] {
  if (depth > MAX_DEPTH) return [leaf((tokens ?? []).map(({ raw }) => raw).join(""))];
  return (tokens ?? []).flatMap((token) => inline(token as Tokens.Generic, depth + 1));
}

function inline(token: Tokens.Generic, depth: number): Inline[] {
  switch (token.type) {
    case "br":
      return [{ kind: "break" }];
    case "codespan":
      return [{ kind: "code", text: orderly(token["text"]) }];
    case "strong":
      return [{ kind: "strong", inlines: inlines(token.tokens, depth) }];
    case "em":
      return [{ kind: "emphasis", inlines: inlines(token.tokens, depth) }];
    case "del":
      return [{ kind: "struck", inlines: inlines(token.tokens, depth) }];
    case "link":
      return [{ kind: "link", inlines: inlines(token.tokens, depth), address: orderly(token["href"]) }];
    case "image":
      return [{ kind: "link", inlines: text(token), address: orderly(token["href"]) }];
    case "text":
      return token.tokens ? inlines(token.tokens, depth) : text(token);
    case "escape":
      return text(token);
    default:
      return [leaf(token.raw)];
  }
}

function text(token: Tokens.Generic): Inline[] {
  return [leaf(token["text"] ?? token.raw)];
}

function leaf(text: string): Inline {
  return { kind: "text", text: orderly(text) };
}

/** Text without the marks that reorder a line: they could make `exe.txt` of `txt.exe`. */
function orderly(text: string): string {
  return text.replace(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "");
}
