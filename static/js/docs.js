// What the documentation does beyond links: it copies code, remembers the language, and finds. Without this file
// nothing is lost: code can be selected, languages are radio buttons, and the browser finds in the page.
// Rule docs.no_script.
const REMEMBERED = "docs-language";
const MAX_FOUND = 30;

// Copies a block of code, or the base address.
function copying(source) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "copy";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(source.textContent);
    button.textContent = "Copied";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  return button;
}

if (navigator.clipboard) {
  for (const bar of document.querySelectorAll(".code-bar")) bar.append(copying(bar.nextElementSibling));
  for (const address of document.querySelectorAll(".plate code")) address.after(" ", copying(address));
}

// Each line of code becomes a box of its own, so that one that is too long goes on below its own indent.
function hang(code) {
  const lines = [[]];
  for (const node of code.childNodes) {
    const parts = node.nodeType === Node.TEXT_NODE ? (node.data.match(/[^\n]*\n|[^\n]+/g) ?? []) : [node];
    for (const part of parts) {
      lines.at(-1).push(part);
      if (typeof part === "string" && part.endsWith("\n")) lines.push([]);
    }
  }
  code.replaceChildren(...lines.filter((line) => line.length).map(lineOf));
}

function lineOf(parts) {
  const line = document.createElement("span");
  line.className = "line";
  line.append(...parts.flatMap((part) => (typeof part === "string" ? breakable(part) : [part])));
  line.style.setProperty("--indent", /^ */.exec(line.textContent)[0].length + 2);
  return line;
}

// A long word, such as an address, breaks behind its marks first.
function breakable(text) {
  const parts = /\S{25}/.test(text) ? text.match(/.*?\w[/=?&,](?=[\w'"<])|.+/gs) : [text];
  return parts.flatMap((part, at) => (at ? [document.createElement("wbr"), part] : [part]));
}

// Folded parts are drawn when they are opened (rule docs.folded).
for (const code of document.querySelectorAll("pre > code")) if (!code.closest(".fold")) hang(code);
for (const fold of document.querySelectorAll(".fold")) {
  const hangAll = () => fold.querySelectorAll("pre > code").forEach((code) => hang(code));
  fold.addEventListener("toggle", hangAll, { once: true });
}

// Marks in the contents what one reads: of the parts where a link leads to, near the window's top, the smallest.
const contents = document.querySelector(".contents");
const links = new Map();
for (const link of contents.querySelectorAll(".contents-all a[href^='#']")) links.set(link.hash.slice(1), link);
const above = new Set();
const TOP = matchMedia("(min-width: 60rem)").matches ? 5 : 13; // in per cent; on a phone below what is sticky
const reading = new IntersectionObserver(
  (changes) => {
    for (const { target, isIntersecting } of changes) above[isIntersecting ? "add" : "delete"](target.id);
    const now = [...links.keys()].findLast((id) => above.has(id));
    if (now) mark(links.get(now));
  },
  { rootMargin: `-${TOP}% 0px -${99 - TOP}% 0px` },
);
for (const id of links.keys()) reading.observe(document.getElementById(id));
mark(links.get(location.hash.slice(1)) ?? links.values().next().value);

// What one reads is unfolded there; all else but the reference folds again, never under somebody's pointer or focus.
function mark(link) {
  contents.querySelector("[aria-current]")?.removeAttribute("aria-current");
  link.setAttribute("aria-current", "location");
  const isInUse = contents.matches(":hover") || contents.querySelector(":focus-visible");
  for (const part of contents.querySelectorAll("details")) {
    if (part.contains(link)) part.open = true;
    else if (!isInUse && !("stays" in part.dataset)) part.open = false;
  }
  const [box, around] = [link.getBoundingClientRect(), contents.getBoundingClientRect()];
  if (box.top < around.top || box.bottom > Math.min(around.bottom, innerHeight)) contents.scrollTop += box.top - around.top - around.height / 3;
}

// A language that was chosen once is chosen everywhere, and on the next visit.
function choose(language) {
  for (const choice of document.querySelectorAll("[data-language]")) {
    if (choice.value === language) choice.checked = true;
  }
}

function remember(language) {
  try {
    localStorage.setItem(REMEMBERED, language);
  } catch {} // a browser that keeps nothing
}

function remembered() {
  try {
    return localStorage.getItem(REMEMBERED);
  } catch {
    return null;
  }
}

choose(remembered());
document.addEventListener("change", ({ target }) => {
  if (!("language" in target.dataset)) return;
  const before = target.getBoundingClientRect().top;
  choose(target.value);
  remember(target.value);
  scrollBy(0, target.getBoundingClientRect().top - before); // what was tapped stays under the finger
});

// What a link leads to is open, also the row that is linked to again; on paper all of it is.
function unfold() {
  const fold = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.querySelector(":scope > .fold");
  if (fold) fold.open = true;
}

unfold();
addEventListener("hashchange", unfold);
document.addEventListener("click", (event) => event.target.closest("a[href^='#']") && setTimeout(unfold));
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll(".fold:not([open])")) {
    fold.open = true;
    fold.dataset.printed = "";
  }
});
addEventListener("afterprint", () => {
  for (const fold of document.querySelectorAll(".fold[data-printed]")) {
    fold.open = false;
    delete fold.dataset.printed;
  }
});

// Finds headings, calls, fields and codes, then in the text; both are read from the page when they are first needed.
const find = document.getElementById("find");
const found = document.getElementById("found");
const NAMES = "h2, h3, .call-line code, .field-row dt > code, .refusal-head code, td:first-child > code";
const TEXT = "p, li, dd, td, .step";
const BEFORE = 30; // letters of a part's text that are shown before what was sought in it
// What people look for under another name than the page's.
const ALSO = {
  ngrok: "laptop", tunnel: "laptop", localhost: "laptop", forged: "signature", fake: "signature", spoofed: "signature",
  length: "characters", size: "kib", window: "capture_before", timeout: "seconds", poll: "slept", polling: "slept",
  missed: "slept", catch: "slept", sync: "slept", replay: "idempotency", duplicate: "twice", chargeback: "dispute", sandbox: "test",
};
let index, parts;

// A text without what belongs to the buttons around code.
function textOf(thing) {
  const copy = thing.cloneNode(true);
  for (const extra of copy.querySelectorAll("button, .code-bar")) extra.replaceWith(" ");
  return copy.textContent.replace(/\s+/g, " ").trim();
}

// How many of the words, or of their other names, a text has.
function count(sought, words) {
  return words.filter((word) => sought.includes(word) || (ALSO[word] && sought.includes(ALSO[word]))).length;
}

function read(selector) {
  return [...document.getElementById("main").querySelectorAll(selector)].flatMap((thing) => {
    const at = thing.closest("[id]:not([id$='-title']):not(main)");
    if (!at) return [];
    const heading = at.matches("h3") ? at.closest(".chapter").querySelector("h2") : at.querySelector("h2, h3, .refusal-head code, .call-line code");
    const words = textOf(thing);
    const where = heading && heading !== thing ? heading.textContent.trim() : "";
    return [{ at: at.id, words, where, sought: words.toLowerCase(), isHeading: /^H/.test(thing.tagName) }];
  });
}

// The parts of the page with their whole text.
function readParts() {
  const all = new Map();
  for (const { at, words, where } of read(TEXT)) {
    const part = all.get(at) ?? { at, title: where || at, text: "" };
    part.text += `${words} `;
    all.set(at, part);
  }
  return [...all.values()].map((part) => ({ ...part, sought: `${part.title} ${part.text}`.toLowerCase() }));
}

// The other parts that have any of the words: the title, and what stands around the first of them.
function inText(words, known) {
  parts ??= readParts();
  const hits = parts.filter(({ at, sought }) => !known.has(at) && count(sought, words));
  return hits.map(({ at, title, text, sought }) => {
    const places = words.flatMap((word) => [word, ALSO[word] ?? word]).map((word) => text.toLowerCase().indexOf(word));
    const known = places.filter((place) => place >= 0);
    const first = known.length ? Math.max(0, Math.min(...known) - BEFORE) : 0;
    return { at, sought, isText: true, words: title, where: `${first ? "…" : ""}${text.slice(first, first + 4 * BEFORE).trim()}…` };
  });
}

// Whole words first, then beginnings, parts whose title has a word, names, other text; headings before fields.
function rank({ sought, words, isHeading, isText }, query) {
  const isTitled = isText && count(words.toLowerCase(), query.split(/\s+/));
  const place = sought === query ? 0 : sought.startsWith(query) ? 2 : isTitled ? 3 : isText ? 6 : 4;
  return place + (isHeading ? 0 : 1);
}

function look(query) {
  index ??= read(NAMES);
  const words = query.split(/\s+/);
  const hits = index.filter(({ sought }) => count(sought, words));
  const isWhole = ({ sought, where }) => count(`${sought} ${where.toLowerCase()}`, words) === words.length;
  const all = [...hits, ...inText(words, new Set(hits.filter(isWhole).map(({ at }) => at)))];
  return all
    .map((hit) => ({ hit, many: count(`${hit.sought} ${hit.isText ? "" : hit.where.toLowerCase()}`, words) }))
    .sort((one, other) => other.many - one.many || rank(one.hit, query) - rank(other.hit, query))
    .map(({ hit }) => hit);
}

function entry({ at, words, where }) {
  const item = document.createElement("li");
  const link = item.appendChild(document.createElement("a"));
  link.href = `#${at}`;
  link.append(words);
  if (where) {
    const hint = link.appendChild(document.createElement("span"));
    hint.className = "hint";
    hint.textContent = where;
  }
  return item;
}

function show() {
  const query = find.value.trim().toLowerCase().replaceAll("'", "’");
  const hits = query ? look(query) : [];
  const entries = hits.slice(0, MAX_FOUND).map(entry);
  if (query && !hits.length) {
    const none = document.createElement("li");
    none.className = "found-none";
    none.textContent = "Nothing. Try another word.";
    entries.push(none);
  }
  found.replaceChildren(...entries);
  found.hidden = !query;
  document.querySelector(".contents-all").hidden = Boolean(query);
  document.getElementById("found-count").textContent = query ? `${hits.length} found` : "";
}

// From the field and between results by arrow keys; Enter in the field takes the first.
function step(event) {
  const links = [find, ...found.querySelectorAll("a")];
  const here = links.indexOf(document.activeElement);
  const next = { ArrowDown: here + 1, ArrowUp: here - 1 }[event.key];
  if (event.key === "Enter" && here === 0) links[1]?.click();
  if (here < 0 || next === undefined || !links[next]) return;
  event.preventDefault();
  links[next].focus();
}

function clear() {
  find.value = "";
  show();
}

document.querySelector(".finder").hidden = false;
find.addEventListener("input", show);
document.querySelector(".finder").addEventListener("keydown", step);
found.addEventListener("click", (event) => event.target.closest("a") && setTimeout(clear));
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, [contenteditable]") && event.target.type !== "radio";
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    if (!find.checkVisibility()) location.hash = "contents";
    find.focus();
    find.select();
  }
  if (event.key !== "Escape") return;
  if (find.value) clear();
  else if (location.hash === "#contents") location.hash = "reading";
});
