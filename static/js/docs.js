// What the documentation does beyond links: it copies code, remembers the language, and finds. Without this file
// nothing is lost: code can be selected, languages are radio buttons, and the browser finds in the page.
const REMEMBERED = "docs-language";
const MAX_FOUND = 30;

// Copies a block of code.
if (navigator.clipboard) {
  for (const bar of document.querySelectorAll(".code-bar")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(bar.nextElementSibling.textContent);
      button.textContent = "Copied";
      setTimeout(() => (button.textContent = "Copy"), 2000);
    });
    bar.append(button);
  }
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

// Finds headings, calls, fields and codes; the index is read from the page when it is first needed.
const find = document.getElementById("find");
const found = document.getElementById("found");
let index;

function readIndex() {
  const main = document.getElementById("main");
  const things = main.querySelectorAll("h2, h3, .call-line code, .field-row dt > code, .refusal-head code, td:first-child > code");
  return [...things].map((thing) => {
    const at = thing.closest("[id]:not([id$='-title']):not(main)");
    const heading = at.matches("h3") ? at.closest(".chapter").querySelector("h2") : at.querySelector("h2, h3");
    const words = thing.textContent.replace(/\s+/g, " ").trim();
    const where = heading && heading !== thing ? heading.textContent.trim() : "";
    return { at: at.id, words, where, sought: words.toLowerCase(), isHeading: /^H/.test(thing.tagName) };
  });
}

// Whole words first, then beginnings, then the rest; headings before fields.
function rank({ sought, isHeading }, query) {
  return (sought === query ? 0 : sought.startsWith(query) ? 2 : 4) + (isHeading ? 0 : 1);
}

function look(query) {
  index ??= readIndex();
  const parts = query.split(/\s+/);
  const hits = index.filter(({ sought, where }) => parts.every((part) => `${sought} ${where.toLowerCase()}`.includes(part)));
  return hits.filter(({ sought }) => parts.some((part) => sought.includes(part))).sort((one, other) => rank(one, query) - rank(other, query));
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
  const query = find.value.trim().toLowerCase();
  const hits = query ? look(query) : [];
  const entries = hits.slice(0, MAX_FOUND).map(entry);
  if (query && !hits.length) {
    const none = document.createElement("li");
    none.className = "found-none";
    none.textContent = "Nothing. Try a field, a code or a heading.";
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
  else if (location.hash === "#contents") location.hash = "main";
});
