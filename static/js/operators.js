// What the operators' pages do beyond links and forms: questions open below their row, and what is live updates itself
// while the page is in sight, never under somebody's hands. Without this file a question is a page of its own.
const board = document.querySelector("[data-live]");
let isPressed = false;
addEventListener("pointerdown", () => (isPressed = true));
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (isPressed = false));

function isInUse() {
  return document.hidden || isPressed || board.querySelector(".ask, details[open], [aria-disabled=true], .htmx-request");
}

document.addEventListener("htmx:beforeRequest", (event) => {
  if (event.target === board && isInUse()) event.preventDefault();
});
// Somebody may have begun while the answer was on its way.
document.addEventListener("htmx:beforeSwap", (event) => {
  if (event.target === board && isInUse()) event.preventDefault();
});

function close(question) {
  const asked = question.parentElement.querySelector("[aria-expanded=true]");
  asked?.setAttribute("aria-expanded", "false");
  question.replaceChildren();
  return asked;
}

// One question at a time; the focus goes into it, and back to what opened it.
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (!detail.target.matches(".question")) return;
  for (const other of board.querySelectorAll(".question:not(:empty)")) if (other !== detail.target) close(other);
  for (const verb of board.querySelectorAll("[data-asks]")) verb.setAttribute("aria-expanded", verb === detail.requestConfig.elt);
  detail.target.querySelector("input:not([type=hidden])").focus();
});

document.addEventListener("click", (event) => {
  const back = event.target.closest(".question [data-back]");
  if (!back) return;
  event.preventDefault();
  close(back.closest(".question"))?.focus();
});

document.addEventListener("keydown", (event) => {
  const question = event.key === "Escape" && event.target.closest?.(".question");
  if (question) close(question)?.focus();
});

function sayWhatOpens() {
  for (const verb of board.querySelectorAll("[data-asks]:not([aria-expanded])")) verb.setAttribute("aria-expanded", "false");
}

document.addEventListener("htmx:afterSettle", sayWhatOpens);
sayWhatOpens();
