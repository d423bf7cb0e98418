// Keeps the group's bill true while it is seen: it asks if anything has changed, and puts in what has, never under
// somebody's hands. Without this file the page loads anew by itself, and each question is a link or opens by itself.
const EVERY_MS = 1500;
const FRESH_MS = 4000;
const spoken = document.getElementById("spoken");
let isPressed = false;
let isAsking = false;

function bill() {
  return document.getElementById("status");
}

function isInUse() {
  const { activeElement } = document;
  return isPressed || activeElement?.matches("input, select, textarea");
}

// What is open in a line stays open, and what is typed stays typed.
function keepOpen(old, fresh) {
  const [were, are] = [old, fresh].map((part) => [...part.querySelectorAll("details")]);
  if (were.length === are.length) were.forEach(({ open }, at) => (are[at].open = open));
  else if (were.length && are.length) are[0].open = were[0].open;
  for (const field of old.querySelectorAll("input:not([type=hidden])")) {
    const same = fresh.querySelector(`#${CSS.escape(field.id)}`);
    if (same && field.value !== field.defaultValue) same.value = field.value;
  }
}

function freshen(old, fresh) {
  const focused = old.contains(document.activeElement) && document.activeElement.id;
  keepOpen(old, fresh);
  old.replaceWith(fresh);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

function markLine(line) {
  line.classList.add("is-fresh");
  setTimeout(() => line.classList.remove("is-fresh"), FRESH_MS);
}

// Their answer is no longer waited for: the words change, what stood there stays as high.
function endQuestion() {
  const block = document.getElementById("said-no");
  const line = block && document.getElementById(`share-${block.dataset.of}`);
  if (!line || line.dataset.status === "declined") return;
  block.dataset.face = "over";
  block.querySelector("h2 span").textContent = line.dataset.spoken;
}

// What was not on the page when it was opened would move all that stands below: the next load shows it.
function comesLate(old) {
  return "late" in old.dataset && !old.childElementCount;
}

// Safari before 17.4 cannot be asked; there, what a closed fold holds has no place in the layout.
function isShown(line) {
  return line.checkVisibility?.() ?? line.offsetParent !== null;
}

function changesOf(fresh) {
  const found = [];
  for (const old of bill().querySelectorAll("[data-part]")) {
    const part = fresh.querySelector(`#${CSS.escape(old.id)}`);
    if (!part || part.dataset.seen === old.dataset.seen || comesLate(old)) continue;
    if (old.matches("li") && isShown(old)) part.classList.add("is-shown"); // a closed fold takes nothing away
    found.push({ old, part });
  }
  return found;
}

function linesOf(page) {
  return [...page.querySelectorAll(".group-line")].map(({ id }) => id).join();
}

// All is worked out before anything is replaced: a bill that is new in some places and old in others is not true.
function put(page) {
  const fresh = page.getElementById("status");
  if (linesOf(fresh) !== linesOf(bill())) {
    // A share that a mate took by item is a new line. What is open or typed is not lost: the next look tries again.
    if (!bill().querySelector("details[open]:not(.fold)")) location.reload();
    return;
  }
  const changes = changesOf(fresh);
  const lines = changes.filter(({ part }) => part.matches("li"));
  const said = lines.filter(({ old, part }) => part.dataset.spoken !== old.dataset.spoken); // the same words twice are no news
  const open = bill().querySelector("details[open]:not(.fold) > summary, .said-no:is([data-face=again], [data-face=keep])")?.id;
  const top = open && document.getElementById(open).getBoundingClientRect().top;
  for (const { old, part } of changes) freshen(old, part);
  const still = open && document.getElementById(open);
  if (still) scrollBy({ top: still.getBoundingClientRect().top - top, behavior: "instant" });
  for (const { part } of lines) markLine(part);
  bill().dataset.seen = fresh.dataset.seen;
  bill().toggleAttribute("data-live", "live" in fresh.dataset);
  document.title = fresh.dataset.title;
  endQuestion();
  spoken.textContent = [...said.map(({ part }) => part.dataset.spoken), document.querySelector("h1").textContent].join(" ");
  showWhatNeedsScript();
  document.dispatchEvent(new Event("bill:changed"));
}

async function ask() {
  const { poll, seen } = bill().dataset;
  const no = document.getElementById("said-no")?.dataset.of ?? "";
  const answer = await fetch(`${poll}&seen=${seen}&no=${no}`, { headers: { "HX-Request": "true" } });
  return { isOver: answer.headers.has("HX-Refresh"), isNew: answer.status === 200, html: await answer.text() };
}

async function look() {
  if (isAsking || document.hidden || !("live" in bill().dataset) || isInUse()) return;
  isAsking = true;
  const answer = await ask().catch(() => null); // out of reach: the next look tells
  isAsking = false;
  if (answer?.isOver) return location.reload();
  if (!answer?.isNew || isInUse()) return; // somebody may have begun while the answer was on its way
  try {
    put(new DOMParser().parseFromString(answer.html, "text/html"));
  } catch {
    location.reload(); // what this browser cannot change, it loads
  }
}

function showFace(block, face) {
  block.dataset.face = face;
  const next = face === "say" ? block.querySelector(".face-say [data-show]") : block.querySelector(`.face-${face} [data-show=say]`);
  next.focus({ preventScroll: true });
}

function closeTool(details) {
  details.open = false;
  details.querySelector("summary").focus({ preventScroll: true });
}

// One line is open at a time, and one thing in it: what closes above does not pull away what is tapped.
function keepPlace(summary) {
  const before = summary.getBoundingClientRect().top;
  requestAnimationFrame(() => scrollBy({ top: summary.getBoundingClientRect().top - before, behavior: "instant" }));
}

function onClick(event) {
  const { target } = event;
  const summary = target.closest(".group summary");
  if (summary) keepPlace(summary);
  const shows = target.closest("[data-show]");
  if (shows) {
    event.preventDefault();
    showFace(shows.closest(".said-no"), shows.dataset.show);
  }
  if (target.closest("[data-close]")) closeTool(target.closest("details"));
  if (target.closest("[data-print]")) print();
}

function onKey({ key, target }) {
  if (key !== "Escape") return;
  const block = target.closest?.(".said-no");
  const details = target.closest?.(".group details[open]");
  if (block) showFace(block, "say");
  else if (details) closeTool(details);
}

function showWhatNeedsScript() {
  for (const button of document.querySelectorAll("[data-close], [data-print]")) button.hidden = false;
}

addEventListener("pointerdown", () => (isPressed = true));
for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => (isPressed = false));
document.addEventListener("click", onClick);
document.addEventListener("keydown", onKey);
document.addEventListener("visibilitychange", look);
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
setInterval(look, EVERY_MS);
document.querySelector(":target")?.closest("details")?.setAttribute("open", ""); // older browsers do not open it
showWhatNeedsScript();
