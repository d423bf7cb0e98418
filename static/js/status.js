// Steps the countdown, says what changes aloud, and returns to the shop unless the payer stays.
// #status is replaced every second, so nothing here keeps an element: each look reads it anew.
const SPOKEN_SECONDS = [60, 30, 10];
const RETURN_SECONDS = 5;
const PRESS_MS = 3000; // a release outside the window is never heard
const spoken = document.getElementById("spoken");
const opened = performance.getEntriesByType("navigation")[0]?.type;
const firstState = document.getElementById("status").dataset.state;
let countdown, countdownEnd, lastSecond, returnAt;
let state = firstState;
const page = document.getElementById("status").dataset.page;
let stays = kept("stays") === page;
let pressedAt = -Infinity;

// What a browser that keeps nothing says is that nothing was kept.
function kept(name) {
  try {
    return sessionStorage.getItem(name);
  } catch {
    return null;
  }
}

function keep(name, words) {
  try {
    sessionStorage.setItem(name, words);
  } catch {}
}

function clock(seconds) {
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
}

function stepCountdown(now) {
  const found = document.querySelector(".countdown");
  if (!found) return;
  if (found !== countdown) {
    const end = now + found.dataset.secondsLeft * 1000;
    // A whole second more or less is the poll's rounding: following it would make the digits stutter.
    if (!countdown || Math.abs(end - countdownEnd) > 1500) countdownEnd = end;
    countdown = found;
  }
  const seconds = Math.max(0, Math.ceil((countdownEnd - now) / 1000));
  const words = clock(seconds);
  const shown = found.querySelector(".countdown-clock");
  if (shown.textContent !== words) shown.textContent = words;
  found.querySelector("progress").value = seconds;
  if (seconds !== lastSecond && SPOKEN_SECONDS.includes(seconds)) spoken.textContent = found.dataset.spoken.replace("{seconds}", seconds);
  lastSecond = seconds;
}

function sayChange() {
  const { dataset } = document.getElementById("status");
  if (dataset.state === state) return;
  state = dataset.state;
  document.title = dataset.title;
  spoken.textContent = document.querySelector("h1").textContent;
}

function stay() {
  stays = true;
  keep("stays", page); // what the payer sends from here leads back here
  stepReturn();
}

function sayThatItStays(offer) {
  offer.hidden = false;
  if (offer.childElementCount) offer.textContent = offer.dataset.stays;
}

function stepReturn(now) {
  const offer = document.querySelector("[data-auto-return]");
  const cameBack = opened !== "navigate" && state === firstState;
  if (!offer) return;
  if (stays || cameBack) return sayThatItStays(offer);
  returnAt ??= now + RETURN_SECONDS * 1000;
  offer.hidden = false;
  const seconds = Math.max(0, Math.ceil((returnAt - now) / 1000));
  offer.querySelector("strong").textContent = seconds;
  if (seconds > 0) return;
  stay();
  location.assign(document.getElementById("return").href);
}

function look() {
  const now = performance.now();
  sayChange();
  stepCountdown(now);
  stepReturn(now);
  const print = document.getElementById("print");
  if (print) print.hidden = false;
}

// A button that is replaced between press and release is never clicked.
function beforeSwap({ detail }) {
  if (performance.now() - pressedAt < PRESS_MS) detail.shouldSwap = false;
}

addEventListener("pointerdown", () => (pressedAt = performance.now()));
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (pressedAt = -Infinity));
document.addEventListener("htmx:beforeSwap", beforeSwap);
for (const touch of ["pointerdown", "keydown"]) addEventListener(touch, () => returnAt && stay());
addEventListener("pageshow", ({ persisted }) => persisted && stay());
addEventListener("click", ({ target }) => target.id === "print" && print());
document.addEventListener("htmx:afterSwap", look);
setInterval(look, 250);
look();
