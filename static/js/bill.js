// Update the lead's bill while the page is visible, but never while the lead uses it.
const EVERY_MS = 1500;
const FRESH_MS = 4000;
const announcement = document.getElementById("spoken");
let isPressed = false;
let isPolling = false;

function findBill() {
  return document.getElementById("status");
}

function isInUse() {
  const { activeElement } = document;
  return isPressed || activeElement?.matches("input, select, textarea");
}

function findOpenDetails() {
  return findBill().querySelector("details[open]:not(.fold)");
}

// After the sign-in has ended, a reload would close the open details. The notice leads to the sign-in.
function waitsForSignIn() {
  return findOpenDetails() && document.querySelector("[data-again]:not([hidden])");
}

// Give the new version of a part the open details and the typed values of the old version.
function copyOpenAndTyped(old, fresh) {
  const [oldDetails, freshDetails] = [old, fresh].map((part) => [...part.querySelectorAll("details")]);
  if (oldDetails.length === freshDetails.length) oldDetails.forEach(({ open }, index) => (freshDetails[index].open = open));
  else if (oldDetails.length && freshDetails.length) freshDetails[0].open = oldDetails[0].open;
  for (const field of old.querySelectorAll("input:not([type=hidden])")) {
    const freshField = fresh.querySelector(`#${CSS.escape(field.id)}`);
    if (freshField && field.value !== field.defaultValue) freshField.value = field.value;
  }
}

function replacePart(old, fresh) {
  const focused = old.contains(document.activeElement) && document.activeElement.id;
  copyOpenAndTyped(old, fresh);
  old.replaceWith(fresh);
  if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
}

function highlightLine(line) {
  line.classList.add("is-fresh");
  setTimeout(() => line.classList.remove("is-fresh"), FRESH_MS);
}

// If the mate no longer declines the share, change the text of the block about it. The block keeps its height.
function endDeclinedQuestion() {
  const block = document.getElementById("said-no");
  const line = block && document.getElementById(`share-${block.dataset.of}`);
  if (!line || line.dataset.status === "declined") return;
  block.dataset.face = "over";
  block.querySelector("h2 span").textContent = line.dataset.spoken;
}

// Return whether a part was empty when the page opened. New content would move everything below it, so the content
// waits for the next load.
function waitsForReload(old) {
  return "late" in old.dataset && !old.childElementCount;
}

// Return whether a line is visible. Safari before 17.4 lacks checkVisibility, but a hidden line has no offsetParent
// there.
function isVisible(line) {
  return line.checkVisibility?.() ?? line.offsetParent !== null;
}

function findChanges(fresh) {
  const found = [];
  for (const old of findBill().querySelectorAll("[data-part]")) {
    const part = fresh.querySelector(`#${CSS.escape(old.id)}`);
    if (!part || part.dataset.seen === old.dataset.seen || waitsForReload(old)) continue;
    if (old.matches("li") && isVisible(old)) part.classList.add("is-shown"); // a fold must not hide a visible line
    found.push({ old, part });
  }
  return found;
}

function listLineIds(page) {
  return [...page.querySelectorAll(".group-line")].map(({ id }) => id).join();
}

// Replace the parts that differ. Find all of them first, so that an error cannot leave a bill with old and new parts.
function updateBill(page) {
  const fresh = page.getElementById("status");
  if (listLineIds(fresh) !== listLineIds(findBill())) {
    // If a mate took a share by item, the new page has an additional line. While details are open, a reload would lose
    // the typed text, so the next poll tries again.
    if (!findOpenDetails()) location.reload();
    return;
  }
  const changes = findChanges(fresh);
  const lines = changes.filter(({ part }) => part.matches("li"));
  const reworded = lines.filter(({ old, part }) => part.dataset.spoken !== old.dataset.spoken);
  const open = findBill().querySelector("details[open]:not(.fold) > summary, .said-no:is([data-face=again], [data-face=keep])")?.id;
  const top = open && document.getElementById(open).getBoundingClientRect().top;
  for (const { old, part } of changes) replacePart(old, part);
  const still = open && document.getElementById(open);
  if (still) scrollBy({ top: still.getBoundingClientRect().top - top, behavior: "instant" });
  for (const { part } of lines) highlightLine(part);
  findBill().dataset.seen = fresh.dataset.seen;
  findBill().toggleAttribute("data-live", "live" in fresh.dataset);
  document.title = fresh.dataset.title;
  endDeclinedQuestion();
  announcement.textContent = [...reworded.map(({ part }) => part.dataset.spoken), document.querySelector("h1").textContent].join(" ");
  showScriptButtons();
  document.dispatchEvent(new Event("bill:changed"));
}

async function pollBill() {
  const { poll, seen } = findBill().dataset;
  const declinedShare = document.getElementById("said-no")?.dataset.of ?? "";
  const answer = await fetch(`${poll}&seen=${seen}&no=${declinedShare}`, { headers: { "HX-Request": "true" } });
  return { isOver: answer.headers.has("HX-Refresh"), isNew: answer.status === 200, html: await answer.text() };
}

async function refreshBill() {
  if (isPolling || document.hidden || !("live" in findBill().dataset) || isInUse() || waitsForSignIn()) return;
  isPolling = true;
  const answer = await pollBill().catch(() => null); // no connection: the next poll tries again
  isPolling = false;
  if (answer?.isOver) return waitsForSignIn() || location.reload();
  if (!answer?.isNew || isInUse()) return; // the lead might have started to type during the request
  try {
    updateBill(new DOMParser().parseFromString(answer.html, "text/html"));
  } catch {
    location.reload(); // the update failed in this browser
  }
}

function showFace(block, face) {
  block.dataset.face = face;
  const next = face === "say" ? block.querySelector(".face-say [data-show]") : block.querySelector(`.face-${face} [data-show=say]`);
  next.focus({ preventScroll: true });
}

function closeDetails(details) {
  details.open = false;
  details.querySelector("summary").focus({ preventScroll: true });
}

// Keep a tapped summary at its place when details above it close.
function keepScrollPosition(summary) {
  const before = summary.getBoundingClientRect().top;
  requestAnimationFrame(() => scrollBy({ top: summary.getBoundingClientRect().top - before, behavior: "instant" }));
}

function onClick(event) {
  const { target } = event;
  const summary = target.closest(".group summary");
  if (summary) keepScrollPosition(summary);
  const faceLink = target.closest("[data-show]");
  if (faceLink) {
    event.preventDefault();
    showFace(faceLink.closest(".said-no"), faceLink.dataset.show);
  }
  if (target.closest("[data-print]")) print();
}

function onKey({ key, target }) {
  if (key !== "Escape") return;
  const block = target.closest?.(".said-no");
  const details = target.closest?.(".group details[open]");
  if (block) showFace(block, "say");
  else if (details) closeDetails(details);
}

function showScriptButtons() {
  for (const button of document.querySelectorAll("[data-print]")) button.hidden = false;
}

addEventListener("pointerdown", () => (isPressed = true));
for (const end of ["pointerup", "pointercancel", "blur"]) addEventListener(end, () => (isPressed = false));
document.addEventListener("click", onClick);
document.addEventListener("keydown", onKey);
document.addEventListener("visibilitychange", refreshBill);
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());
setInterval(refreshBill, EVERY_MS);
document.querySelector(":target")?.closest("details")?.setAttribute("open", ""); // older browsers do not open it automatically
showScriptButtons();
