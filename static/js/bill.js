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
  return isPressed || activeElement?.matches("input, select, textarea") || bill().querySelector("details[open]:not(.fold), .said-no:is([data-face=again], [data-face=keep])");
}

function freshen(old, fresh) {
  const focused = old.contains(document.activeElement) && document.activeElement.id;
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

function put(page) {
  const fresh = page.getElementById("status");
  const said = [];
  for (const old of bill().querySelectorAll("[data-part]")) {
    const part = fresh.querySelector(`#${CSS.escape(old.id)}`);
    if (!part || part.dataset.seen === old.dataset.seen || comesLate(old)) continue;
    if (old.matches("li") && old.checkVisibility()) part.classList.add("is-shown"); // a closed fold takes nothing away
    freshen(old, part);
    if (!part.matches("li")) continue;
    markLine(part);
    if (part.dataset.spoken !== old.dataset.spoken) said.push(part.dataset.spoken); // the same words twice are no news
  }
  bill().dataset.seen = fresh.dataset.seen;
  bill().toggleAttribute("data-live", "live" in fresh.dataset);
  document.title = fresh.dataset.title;
  endQuestion();
  spoken.textContent = [...said, document.querySelector("h1").textContent].join(" ");
  showWhatNeedsScript();
  document.dispatchEvent(new Event("bill:changed"));
}

async function look() {
  if (isAsking || document.hidden || !("live" in bill().dataset) || isInUse()) return;
  isAsking = true;
  const { poll, seen } = bill().dataset;
  const no = document.getElementById("said-no")?.dataset.of ?? "";
  try {
    const answer = await fetch(`${poll}&seen=${seen}&no=${no}`, { headers: { "HX-Request": "true" } });
    if (answer.headers.has("HX-Refresh")) location.reload();
    else if (answer.status === 200) {
      const page = new DOMParser().parseFromString(await answer.text(), "text/html");
      if (!isInUse()) put(page); // somebody may have begun while the answer was on its way
    }
  } catch {
    // out of reach: the next look tells
  } finally {
    isAsking = false;
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
showWhatNeedsScript();
