// Update the countdown, announce changes to screen readers, and return to the shop unless the payer stays.
// htmx replaces #status every second, so each function finds its elements again.
const SPOKEN_SECONDS = [60, 30, 10];
const RETURN_SECONDS = 5;
const PRESS_MS = 3000; // because no event reports that the pointer was released outside the window
const announcement = document.getElementById("spoken");
const navigationType = performance.getEntriesByType("navigation")[0]?.type;
const firstState = document.getElementById("status").dataset.state;
let countdown, countdownEnd, lastSecond, returnAt;
let state = firstState;
const page = document.getElementById("status").dataset.page;
let isStaying = readStored("stays") === page;
let pressedAt = -Infinity;

// Return a stored value, or null if there is none or the browser blocks storage.
function readStored(key) {
  try {
    return sessionStorage.getItem(key);
  } catch {
    return null;
  }
}

function store(key, text) {
  try {
    sessionStorage.setItem(key, text);
  } catch {}
}

function formatClock(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

function updateCountdown(now) {
  const current = document.querySelector(".countdown");
  if (!current) return;
  if (current !== countdown) {
    const end = now + current.dataset.secondsLeft * 1000;
    // The server rounds to whole seconds. If the page followed each small difference, the digits would jump.
    if (!countdown || Math.abs(end - countdownEnd) > 1500) countdownEnd = end;
    countdown = current;
  }
  const seconds = Math.max(0, Math.ceil((countdownEnd - now) / 1000));
  const text = formatClock(seconds);
  const digits = current.querySelector(".countdown-clock");
  if (digits.textContent !== text) digits.textContent = text;
  current.querySelector("progress").value = seconds;
  if (seconds !== lastSecond && SPOKEN_SECONDS.includes(seconds)) announcement.textContent = current.dataset.spoken.replace("{seconds}", seconds);
  lastSecond = seconds;
}

function announceChange() {
  const { dataset } = document.getElementById("status");
  if (dataset.state === state) return;
  state = dataset.state;
  document.title = dataset.title;
  announcement.textContent = document.querySelector("h1").textContent;
}

function stay() {
  isStaying = true;
  store("stays", page); // after a form, this page opens again, and must not start the return again
  updateReturn();
}

function showStaying(offer) {
  offer.hidden = false;
  if (offer.childElementCount) offer.textContent = offer.dataset.stays;
}

function updateReturn(now) {
  const offer = document.querySelector("[data-auto-return]");
  const cameBack = navigationType !== "navigate" && state === firstState;
  if (!offer) return;
  if (isStaying || cameBack) return showStaying(offer);
  returnAt ??= now + RETURN_SECONDS * 1000;
  offer.hidden = false;
  const seconds = Math.max(0, Math.ceil((returnAt - now) / 1000));
  offer.querySelector("strong").textContent = seconds;
  if (seconds > 0) return;
  stay();
  location.assign(document.getElementById("return").href);
}

function updatePage() {
  const now = performance.now();
  announceChange();
  updateCountdown(now);
  updateReturn(now);
  const print = document.getElementById("print");
  if (print) print.hidden = false;
}

// Cancel the swap while a button is pressed, because the browser does not report a click on a replaced button. Also cancel
// it while the lead has opened a mate's line, because the swap would close the line and lose the typed text.
function preventSwapWhileInUse({ detail }) {
  const isPressed = performance.now() - pressedAt < PRESS_MS;
  if (isPressed || document.querySelector("#people details[open]")) detail.shouldSwap = false;
}

addEventListener("pointerdown", () => (pressedAt = performance.now()));
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (pressedAt = -Infinity));
document.addEventListener("htmx:beforeSwap", preventSwapWhileInUse);
for (const touch of ["pointerdown", "keydown"]) addEventListener(touch, () => returnAt && stay());
addEventListener("pageshow", ({ persisted }) => persisted && stay());
addEventListener("click", ({ target }) => target.id === "print" && print());
document.addEventListener("htmx:afterSwap", updatePage);
setInterval(updatePage, 250);
updatePage();
