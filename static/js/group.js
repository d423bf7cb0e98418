// Loads the group page again once something on it has changed, unless the person is using it.
const EVERY_MS = 10_000;
const PRESS_MS = 3000; // a release outside the window is never heard
const answersForm = document.querySelector("meta[name=reload]") !== null;
let known = answersForm ? null : words(document); // the notice that answers a form is not shown again
let pressedAt = -Infinity;

function words(page) {
  return page.querySelector(".step").textContent.replace(/\s+/g, " ");
}

function isInUse() {
  const fields = [...document.querySelectorAll(".step input:not([type=hidden])")];
  const isTyped = fields.some((field) => field === document.activeElement || field.value !== field.defaultValue || field.checked !== field.defaultChecked);
  const isOpen = document.querySelector(".step details[open]") !== null;
  return isTyped || isOpen || performance.now() - pressedAt < PRESS_MS;
}

async function look() {
  if (document.hidden || isInUse()) return;
  const answer = await fetch(location.href).catch(() => null); // the next look tries again
  if (!answer?.ok || isInUse()) return;
  if (answer.redirected) return void location.replace(answer.url); // the person's own page
  const found = words(new DOMParser().parseFromString(await answer.text(), "text/html"));
  if (known !== null && found !== known) return void location.reload();
  known = found;
}

addEventListener("pointerdown", () => (pressedAt = performance.now()));
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (pressedAt = -Infinity));
document.addEventListener("visibilitychange", look);
setInterval(look, EVERY_MS);
if (answersForm) look();
