import { flushSync, mount, unmount } from "svelte";
import { describe, expect, test } from "vitest";
import { MAX_MARKDOWN, parse } from "./markdown";
import Answer from "./parts/Answer.svelte";

const ALLOWED = new Set(
  "P STRONG EM DEL CODE PRE BR HR UL OL LI BLOCKQUOTE TABLE THEAD TBODY TR TH TD DIV BDI".split(" "),
);

function render(text: string) {
  const target = document.createElement("div");
  const answer = mount(Answer, { target, props: { text, busy: false } });
  flushSync();
  const elements = [...target.querySelectorAll("*")];
  const seen = { text: target.textContent ?? "", elements, html: target.innerHTML };
  void unmount(answer);
  return seen;
}

const hostile: [name: string, markdown: string, shows: string][] = [
  ["a script", "<script>alert(1)</script>", "<script>alert(1)</script>"],
  ["a handler", 'before <img src=x onerror="alert(1)"> after', "onerror"],
  ["a block of HTML", "<div onclick=alert(1)>\n\nhello\n\n</div>", "hello"],
  ["an iframe", "<iframe src='https://example.org'></iframe>", "iframe"],
  ["a javascript link", "[click](javascript:alert(1))", "javascript:alert(1)"],
  ["a data link", "[click](data:text/html,<script>alert(1)</script>)", "click"],
  ["a plain link", "[the law](https://example.org/law)", "https://example.org/law"],
  ["an automatic link", "see https://example.org now", "https://example.org"],
  ["a picture", "![a cat](https://example.org/cat.png)", "a cat"],
  ["a reference link", "[x][1]\n\n[1]: javascript:alert(1)", "x"],
  ["HTML in a heading", "# <b onmouseover=alert(1)>hi</b>", "hi"],
  ["HTML in a table", "| a |\n|---|\n| <svg onload=alert(1)> |", "svg"],
  ["HTML in code", "```html\n<script>alert(1)</script>\n```", "<script>alert(1)</script>"],
  ["a style", "<style>body{display:none}</style>", "display:none"],
  ["entities", "&lt;script&gt;alert(1)&lt;/script&gt;", "alert(1)"],
  ["an end tag out of nothing", "</div></main><h1>big</h1>", "big"],
];

test.each(hostile)("%s stays text", (_, markdown, shows) => {
  const { text, elements } = render(markdown);
  expect(text).toContain(shows);
  expect(elements.map(({ tagName }) => tagName).filter((tag) => !ALLOWED.has(tag))).toEqual([]);
  const attributes = elements.flatMap((element) => element.getAttributeNames());
  expect(attributes.filter((name) => /^on|href|src|^style$/i.test(name))).toEqual([]);
});

const shapes: [name: string, markdown: string, html: RegExp][] = [
  ["strong and code", "**a** `b`", /<strong[^>]*>.*a.*<\/strong>.*<code[^>]*>b<\/code>/],
  ["a list from three", "3. a\n4. b", /<ol start="3"/],
  ["a nested list", "- a\n  - b", /<ul.*<ul/],
  ["a table", "| a | b |\n|---|---|\n| 1 | 2 |", /<th[^>]*>.*a.*<td[^>]*>.*1/],
  ["a heading below those of the page", "# a", /role="heading".*aria-level="3"/],
  ["a line break", "a\nb", /a.*<br/],
  ["a quote", "> a", /<blockquote/],
];

test.each(shapes)("%s", (_, markdown, html) => {
  expect(render(markdown).html.replaceAll("\n", " ")).toMatch(html);
});

describe("what is cut short while streaming", () => {
  const whole = "# A\n\n**b** `c` [d](e)\n\n| f | g |\n|---|---|\n| 1 | 2 |\n\n```\nh\n```\n\n- i\n  1. j";

  test("parses at every length", () => {
    for (let end = 0; end <= whole.length; end++) expect(() => parse(whole.slice(0, end))).not.toThrow();
  });
});

describe("bounds", () => {
  test.each([
    ["deep quotes", ">".repeat(5000) + "x"],
    ["deep emphasis", "*".repeat(3000) + "x" + "*".repeat(3000)],
    ["deep brackets", "[".repeat(3000)],
    ["too long", "**a** ".repeat(MAX_MARKDOWN / 4)],
  ])("%s", (_, markdown) => {
    expect(render(markdown).text.length).toBeGreaterThan(0);
  });
});

test("no space is added or lost between pieces", () => {
  expect(render("a**b**c `d`, *e*~~f~~. [g](h)!").text).toBe("abc d, ef. g\u00a0‹h›!");
});

test("characters that reorder a line are taken out", () => {
  for (const mark of ["\u202e", "&#x202e;", "\u2066", "\u200f"]) {
    for (const frame of ["$", "`$`", "**$**", "[$](b$)", "```\n$\n```", "<b>$</b>"]) {
      expect(render(frame.replaceAll("$", `a${mark}txt.exe`)).text).not.toMatch(/[\u200e\u200f\u202a-\u202e\u2066-\u2069]/);
    }
  }
});
