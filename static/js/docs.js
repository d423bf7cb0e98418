// The documentation's copy buttons, remembered language and search. Without JavaScript, readers can still select code,
// choose a language with radio buttons, and search with the browser. Rule docs.no_script.
const REMEMBERED = "docs-language";
const MAX_FOUND = 30;

// Return a button that copies the text of an element.
function makeCopyButton(source) {
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
  for (const bar of document.querySelectorAll(".code-bar")) bar.append(makeCopyButton(bar.nextElementSibling));
  for (const address of document.querySelectorAll(".plate code")) address.after(" ", makeCopyButton(address));
}

// Put each line of code into its own element, so that a long line continues below its own indent.
function wrapLines(code) {
  const lines = [[]];
  for (const node of code.childNodes) {
    const parts = node.nodeType === Node.TEXT_NODE ? (node.data.match(/[^\n]*\n|[^\n]+/g) ?? []) : [node];
    for (const part of parts) {
      lines.at(-1).push(part);
      if (typeof part === "string" && part.endsWith("\n")) lines.push([]);
    }
  }
  code.replaceChildren(...lines.filter((line) => line.length).map(makeLine));
}

function makeLine(parts) {
  const line = document.createElement("span");
  line.className = "line";
  line.append(...parts.flatMap((part) => (typeof part === "string" ? addLineBreaks(part) : [part])));
  line.style.setProperty("--indent", /^ */.exec(line.textContent)[0].length + 2);
  return line;
}

// Allow a line break after each "/", "=", "?", "&" or "," of a text with a long word, such as an address.
function addLineBreaks(text) {
  const parts = /\S{25}/.test(text) ? text.match(/.*?\w[/=?&,](?=[\w'"<])|.+/gs) : [text];
  return parts.flatMap((part, index) => (index ? [document.createElement("wbr"), part] : [part]));
}

// The lines of a folded part are wrapped when the reader opens it (rule docs.folded).
for (const code of document.querySelectorAll("pre > code")) if (!code.closest(".fold")) wrapLines(code);
for (const fold of document.querySelectorAll(".fold")) {
  const wrapAll = () => fold.querySelectorAll("pre > code").forEach((code) => wrapLines(code));
  fold.addEventListener("toggle", wrapAll, { once: true });
}

// Mark the current section in the contents: the innermost one at the top of the window.
const contents = document.querySelector(".contents");
const links = new Map();
for (const link of contents.querySelectorAll(".contents-all a[href^='#']")) links.set(link.hash.slice(1), link);
const idsAtTop = new Set();
const TOP = matchMedia("(min-width: 60rem)").matches ? 5 : 13; // per cent of the window; on a phone, the sticky head is above
const observer = new IntersectionObserver(
  (changes) => {
    for (const { target, isIntersecting } of changes) idsAtTop[isIntersecting ? "add" : "delete"](target.id);
    const innermost = [...links.keys()].findLast((id) => idsAtTop.has(id));
    if (innermost) markCurrentSection(links.get(innermost));
  },
  { rootMargin: `-${TOP}% 0px -${99 - TOP}% 0px` },
);
for (const id of links.keys()) observer.observe(document.getElementById(id));
markCurrentSection(links.get(location.hash.slice(1)) ?? links.values().next().value);

// Mark a link in the contents, and open the parts of the contents around it. Close the other parts, except the
// reference. Do not close any part while the pointer or the keyboard focus is in the contents.
function markCurrentSection(link) {
  contents.querySelector("[aria-current]")?.removeAttribute("aria-current");
  link.setAttribute("aria-current", "location");
  const isInUse = contents.matches(":hover") || contents.querySelector(":focus-visible");
  for (const part of contents.querySelectorAll("details")) {
    if (part.contains(link)) part.open = true;
    else if (!isInUse && !("stays" in part.dataset)) part.open = false;
  }
  const [linkBox, contentsBox] = [link.getBoundingClientRect(), contents.getBoundingClientRect()];
  const isHidden = linkBox.top < contentsBox.top || linkBox.bottom > Math.min(contentsBox.bottom, innerHeight);
  if (isHidden) contents.scrollTop += linkBox.top - contentsBox.top - contentsBox.height / 3;
}

// Select a language in all examples of the page.
function selectLanguage(language) {
  for (const choice of document.querySelectorAll("[data-language]")) {
    if (choice.value === language) choice.checked = true;
  }
}

function rememberLanguage(language) {
  try {
    localStorage.setItem(REMEMBERED, language);
  } catch {} // the browser blocks storage
}

function rememberedLanguage() {
  try {
    return localStorage.getItem(REMEMBERED);
  } catch {
    return null;
  }
}

selectLanguage(rememberedLanguage());
document.addEventListener("change", ({ target }) => {
  if (!("language" in target.dataset)) return;
  const before = target.getBoundingClientRect().top;
  selectLanguage(target.value);
  rememberLanguage(target.value);
  scrollBy(0, target.getBoundingClientRect().top - before); // keep the tapped choice at its place on the screen
});

// Open the folded part that the address names.
function openLinkedPart() {
  const fold = document.getElementById(decodeURIComponent(location.hash.slice(1)))?.querySelector(":scope > .fold");
  if (fold) fold.open = true;
}

openLinkedPart();
addEventListener("hashchange", openLinkedPart);
// A second click on the same link does not cause a hashchange event.
document.addEventListener("click", (event) => event.target.closest("a[href^='#']") && setTimeout(openLinkedPart));
// Open all parts for printing. Afterwards, close the parts again that were closed before.
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

// Search the names (headings, calls, fields and codes) first, then the other text. Both are read at the first search.
const searchField = document.getElementById("find");
const results = document.getElementById("found");
const NAMES = "h2, h3, .call-line code, .field-row dt > code, .refusal-head code, td:first-child > code";
const TEXT = "p, li, dd, td, .step";
const BEFORE = 30; // characters of a result's text before the first match
// Words that readers search for, each with the word that the page uses instead.
const SYNONYMS = {
  ngrok: "laptop", tunnel: "laptop", localhost: "laptop", forged: "signature", fake: "signature", spoofed: "signature",
  length: "characters", size: "kib", window: "capture_before", timeout: "seconds", poll: "slept", polling: "slept",
  missed: "slept", catch: "slept", sync: "slept", replay: "idempotency", duplicate: "twice", chargeback: "dispute", sandbox: "test",
};
let names, sections;

// Return the text of an element without the copy buttons and the bars above code.
function readText(element) {
  const copy = element.cloneNode(true);
  for (const extra of copy.querySelectorAll("button, .code-bar")) extra.replaceWith(" ");
  return copy.textContent.replace(/\s+/g, " ").trim();
}

// Return how many of the words a text contains, directly or as a synonym. The text is in lower case.
function countMatches(text, words) {
  return words.filter((word) => text.includes(word) || (SYNONYMS[word] && text.includes(SYNONYMS[word]))).length;
}

// Return an entry for each element: its text, and the id and the heading of the section that contains it.
function readEntries(selector) {
  return [...document.getElementById("main").querySelectorAll(selector)].flatMap((element) => {
    const section = element.closest("[id]:not([id$='-title']):not(main)");
    if (!section) return [];
    const heading = section.matches("h3") ? section.closest(".chapter").querySelector("h2") : section.querySelector("h2, h3, .refusal-head code, .call-line code");
    const text = readText(element);
    const context = heading && heading !== element ? heading.textContent.trim() : "";
    return [{ id: section.id, text, context, lowerText: text.toLowerCase(), isHeading: /^H/.test(element.tagName) }];
  });
}

// Return each section of the page with its title and its whole text.
function readSections() {
  const all = new Map();
  for (const { id, text, context } of readEntries(TEXT)) {
    const section = all.get(id) ?? { id, title: context || id, text: "" };
    section.text += `${text} `;
    all.set(id, section);
  }
  return [...all.values()].map((section) => ({ ...section, lowerText: `${section.title} ${section.text}`.toLowerCase() }));
}

// Return the sections that contain one of the words, except the ids in `known`, each with the text around the first
// match.
function findInText(words, known) {
  sections ??= readSections();
  const hits = sections.filter(({ id, lowerText }) => !known.has(id) && countMatches(lowerText, words));
  return hits.map(({ id, title, text, lowerText }) => {
    const places = words.flatMap((word) => [word, SYNONYMS[word] ?? word]).map((word) => text.toLowerCase().indexOf(word));
    const matches = places.filter((place) => place >= 0);
    const first = matches.length ? Math.max(0, Math.min(...matches) - BEFORE) : 0;
    return { id, lowerText, isText: true, text: title, context: `${first ? "…" : ""}${text.slice(first, first + 4 * BEFORE).trim()}…` };
  });
}

// Return the rank of a hit. The best hits have the lowest ranks: exact names, names that begin with the query, sections
// with a matching title, other names, other text. Headings come before other entries of the same kind.
function rankHit({ lowerText, text, isHeading, isText }, query) {
  const isTitled = isText && countMatches(text.toLowerCase(), query.split(/\s+/));
  const place = lowerText === query ? 0 : lowerText.startsWith(query) ? 2 : isTitled ? 3 : isText ? 6 : 4;
  return place + (isHeading ? 0 : 1);
}

// Return the hits for a query. Hits that match the most words come first.
function findHits(query) {
  names ??= readEntries(NAMES);
  const words = query.split(/\s+/);
  const hits = names.filter(({ lowerText }) => countMatches(lowerText, words));
  const hasAllWords = ({ lowerText, context }) => countMatches(`${lowerText} ${context.toLowerCase()}`, words) === words.length;
  const all = [...hits, ...findInText(words, new Set(hits.filter(hasAllWords).map(({ id }) => id)))];
  return all
    .map((hit) => ({ hit, matches: countMatches(`${hit.lowerText} ${hit.isText ? "" : hit.context.toLowerCase()}`, words) }))
    .sort((one, other) => other.matches - one.matches || rankHit(one.hit, query) - rankHit(other.hit, query))
    .map(({ hit }) => hit);
}

function makeResult({ id, text, context }) {
  const item = document.createElement("li");
  const link = item.appendChild(document.createElement("a"));
  link.href = `#${id}`;
  link.append(text);
  if (context) {
    const hint = link.appendChild(document.createElement("span"));
    hint.className = "hint";
    hint.textContent = context;
  }
  return item;
}

function showResults() {
  const query = searchField.value.trim().toLowerCase().replaceAll("'", "’");
  const hits = query ? findHits(query) : [];
  const items = hits.slice(0, MAX_FOUND).map(makeResult);
  if (query && !hits.length) {
    const none = document.createElement("li");
    none.className = "found-none";
    none.textContent = "Nothing. Try another word.";
    items.push(none);
  }
  results.replaceChildren(...items);
  results.hidden = !query;
  document.querySelector(".contents-all").hidden = Boolean(query);
  document.getElementById("found-count").textContent = query ? `${hits.length} found` : "";
}

// Move the focus between the field and the results with the arrow keys. Enter in the field opens the first result.
function moveFocus(event) {
  const stops = [searchField, ...results.querySelectorAll("a")];
  const here = stops.indexOf(document.activeElement);
  const next = { ArrowDown: here + 1, ArrowUp: here - 1 }[event.key];
  if (event.key === "Enter" && here === 0) stops[1]?.click();
  if (here < 0 || next === undefined || !stops[next]) return;
  event.preventDefault();
  stops[next].focus();
}

function clearSearch() {
  searchField.value = "";
  showResults();
}

document.querySelector(".finder").hidden = false;
searchField.addEventListener("input", showResults);
document.querySelector(".finder").addEventListener("keydown", moveFocus);
results.addEventListener("click", (event) => event.target.closest("a") && setTimeout(clearSearch));
document.addEventListener("keydown", (event) => {
  const isTyping = event.target.closest("input, textarea, select, [contenteditable]") && event.target.type !== "radio";
  if (event.key === "/" && !isTyping && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault();
    if (!searchField.checkVisibility()) location.hash = "contents";
    searchField.focus();
    searchField.select();
  }
  if (event.key !== "Escape") return;
  if (searchField.value) clearSearch();
  else if (location.hash === "#contents") location.hash = "reading";
});
