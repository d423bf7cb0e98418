// Reload the group page when it has changed on the server, unless the mate is using it.
const EVERY_MS = 10_000;
const PRESS_MS = 3000; // because no event reports that the pointer was released outside the window
const answersForm = document.querySelector("meta[name=reload]") !== null;
let knownText = answersForm ? null : readText(document); // after a form, the page has a notice that the next load lacks
let pressedAt = -Infinity;

function readText(page) {
  return page.querySelector(".step").textContent.replace(/\s+/g, " ");
}

function isInUse() {
  const fields = [...document.querySelectorAll(".step input:not([type=hidden])")];
  const isTyped = fields.some((field) => field === document.activeElement || field.value !== field.defaultValue || field.checked !== field.defaultChecked);
  const isOpen = document.querySelector(".step details[open]") !== null;
  return isTyped || isOpen || performance.now() - pressedAt < PRESS_MS;
}

async function reloadIfChanged() {
  if (document.hidden || isInUse()) return;
  const answer = await fetch(location.href).catch(() => null); // no connection: try again after EVERY_MS
  if (!answer?.ok || isInUse()) return;
  if (answer.redirected) return void location.replace(answer.url); // the page of the mate's own share
  const text = readText(new DOMParser().parseFromString(await answer.text(), "text/html"));
  if (knownText !== null && text !== knownText) return void location.reload();
  knownText = text;
}

addEventListener("pointerdown", () => (pressedAt = performance.now()));
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (pressedAt = -Infinity));
document.addEventListener("visibilitychange", reloadIfChanged);
setInterval(reloadIfChanged, EVERY_MS);
if (answersForm) reloadIfChanged();
