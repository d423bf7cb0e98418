// What the portal does beyond links and forms: the menu on a phone, copying, countdowns, questions in place.
// Every part of it works without this file: the menu is a page, what is copied can be selected.
const menu = document.querySelector(".side-menu[aria-controls]"); // the menu's own page has a way back in its place

function openMenu(isOpen) {
  document.querySelector(".side").classList.toggle("is-open", isOpen);
  menu.setAttribute("aria-expanded", isOpen);
  menu.lastChild.textContent = isOpen ? "Close" : "Menu";
  const icon = menu.querySelector("use");
  icon.setAttribute("href", icon.getAttribute("href").replace(/#.*/, isOpen ? "#cross" : "#menu"));
}

if (menu) {
  menu.setAttribute("role", "button");
  openMenu(false);
  menu.addEventListener("click", (event) => {
    event.preventDefault();
    openMenu(menu.getAttribute("aria-expanded") !== "true");
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== " ") return;
    event.preventDefault();
    menu.click();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && menu.getAttribute("aria-expanded") === "true") {
      openMenu(false);
      menu.focus();
    }
  });
}

function toast(words) {
  const shown = document.getElementById("toast") ?? document.body.appendChild(document.createElement("p"));
  shown.id = "toast";
  shown.className = "toast";
  shown.setAttribute("role", "status");
  shown.textContent = words;
  shown.hidden = false;
  clearTimeout(toast.timer);
  toast.timer = setTimeout(() => (shown.hidden = true), 5000);
}

function complain(words) {
  const said = document.getElementById("complaint") ?? document.createElement("p");
  said.id = "complaint";
  said.className = "complaint tone-stop";
  said.setAttribute("role", "alert");
  document.getElementById("main").prepend(said);
  said.textContent = words;
}

// Copies the text of the element that it names.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText((source.value ?? source.textContent).trim());
  toast(button.dataset.copied ?? "Copied");
});

// Copies what the link leads to; without script, or without a clipboard, it is opened.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-fetch]");
  if (!link || !navigator.clipboard || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const answer = await fetch(link.href);
  if (!answer.ok) return location.assign(link.href);
  await navigator.clipboard.writeText(await answer.text());
  toast(link.dataset.fetch);
});

// A row opens in place, and closes when its link is used again.
document.addEventListener("htmx:beforeRequest", (event) => {
  const opener = event.target.closest?.("[data-opens]");
  if (!opener) return;
  const row = document.getElementById(opener.dataset.opens).parentElement;
  const isOpen = opener.getAttribute("aria-expanded") === "true";
  opener.setAttribute("aria-expanded", !isOpen);
  row.hidden = isOpen;
  if (isOpen) {
    row.firstElementChild.replaceChildren();
    event.preventDefault();
  }
});

// What waits for the whole page counts down to a moment; the moment itself stands beside it.
function countDown() {
  for (const clock of document.querySelectorAll("time[data-countdown]")) {
    const seconds = Math.max(0, Math.round((new Date(clock.dateTime) - Date.now()) / 1000));
    const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
    const [hours, minutes, rest] = parts.map((part) => String(part).padStart(2, "0"));
    const bar = document.getElementById(clock.dataset.countdown || "none");
    if (bar) bar.value = seconds;
    clock.textContent = parts[0] ? `${Number(hours)}:${minutes}:${rest}` : `${Number(minutes)}:${rest}`;
  }
}

// A question opens in place, one at a time; the focus goes into it, and back to what opened it. Without this file, or
// without htmx, it is a page of its own.
function close(question) {
  const asked = document.querySelector(`[data-asks][hx-target="#${question.id}"][aria-expanded=true]`);
  asked?.setAttribute("aria-expanded", "false");
  question.replaceChildren();
  return asked;
}

document.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (!detail.target.matches(".question")) return;
  for (const other of document.querySelectorAll(".question:not(:empty)")) if (other !== detail.target) close(other);
  for (const verb of document.querySelectorAll("[data-asks]")) {
    verb.setAttribute("aria-expanded", verb === detail.requestConfig.elt);
  }
  const first = detail.target.querySelector("input:not([type=hidden]), textarea, select") ?? detail.target.querySelector("h2, h3");
  if (first?.matches("h2, h3")) first.tabIndex = -1;
  first?.focus();
});

document.addEventListener("click", (event) => {
  const back = event.target.closest("[data-back]");
  const opened = back && close(back.closest(".question"));
  if (!opened) return;
  event.preventDefault();
  opened.focus();
});

document.addEventListener("keydown", (event) => {
  const question = event.key === "Escape" && event.target.closest?.(".question");
  if (question) close(question)?.focus();
});

function sayWhatOpens() {
  for (const verb of document.querySelectorAll("[data-asks]:not([aria-expanded])")) verb.setAttribute("aria-expanded", "false");
}

// What updates itself does so while the page is in sight, and never under somebody's hands; who may have begun while
// the answer was on its way.
let isPressed = false;
addEventListener("pointerdown", () => (isPressed = true));
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (isPressed = false));
const IN_USE =
  ".ask, details[open], .table-tick :checked, [data-opens][aria-expanded=true], [aria-disabled=true], .htmx-request:not([data-updates])";
for (const moment of ["htmx:beforeRequest", "htmx:beforeSwap"]) {
  document.addEventListener(moment, (event) => {
    if (!event.detail.requestConfig.elt.matches("[data-updates]")) return;
    if (document.hidden || isPressed || event.detail.target.querySelector(IN_USE)) event.preventDefault();
  });
}

// A button that was pressed says so, and is not pressed twice.
document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button?.dataset.busy) return;
  if (button.getAttribute("aria-disabled") === "true") return event.preventDefault();
  button.setAttribute("aria-disabled", "true");
  button.textContent = button.dataset.busy;
});
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());

// A request of a part of the page that fails says so where it was asked for.
for (const failure of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(failure, ({ detail }) => {
    const id = detail.xhr?.getResponseHeader?.("X-Request-Id");
    complain(id ? `That did not work. Load the page again, or quote ${id} to support.` : "No connection. Try again.");
  });
}

function reveal() {
  sayWhatOpens();
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
  countDown();
}

document.addEventListener("htmx:afterSettle", reveal);
setInterval(countDown, 1000);
reveal();

// A colour is typed as its code, or picked, and each follows the other.
for (const picker of document.querySelectorAll("[data-picks]")) {
  const field = document.getElementById(picker.dataset.picks);
  picker.hidden = false;
  picker.addEventListener("input", () => {
    field.value = picker.value.toUpperCase();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  });
  field.addEventListener("input", () => {
    if (/^#[0-9a-f]{6}$/i.test(field.value)) picker.value = field.value;
  });
}

// A file that is too large is refused before it is sent: an answer to what is still being sent may never be seen.
document.addEventListener("change", (event) => {
  const field = event.target.closest("[data-max-bytes]");
  if (!field) return;
  const isTooLarge = [...field.files].some((file) => file.size > Number(field.dataset.maxBytes));
  field.setCustomValidity(isTooLarge ? field.dataset.tooLarge : "");
  field.reportValidity();
});
