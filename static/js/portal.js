// The portal's script: the menu on a phone, copy buttons, countdowns, and questions within the page. Without
// JavaScript, the menu and each question are separate pages, and people can select the text to copy.
const menu = document.querySelector(".side-menu[aria-controls]"); // the menu's own page has a link back instead

function toggleMenu(isOpen) {
  document.querySelector(".side").classList.toggle("is-open", isOpen);
  menu.setAttribute("aria-expanded", isOpen);
  menu.lastChild.textContent = isOpen ? "Close" : "Menu";
  const icon = menu.querySelector("use");
  icon.setAttribute("href", icon.getAttribute("href").replace(/#.*/, isOpen ? "#cross" : "#menu"));
}

if (menu) {
  menu.setAttribute("role", "button");
  toggleMenu(false);
  menu.addEventListener("click", (event) => {
    event.preventDefault();
    toggleMenu(menu.getAttribute("aria-expanded") !== "true");
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key !== " ") return;
    event.preventDefault();
    menu.click();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape" && menu.getAttribute("aria-expanded") === "true") {
      toggleMenu(false);
      menu.focus();
    }
  });
}

function showToast(words) {
  const message = document.getElementById("toast") ?? document.body.appendChild(document.createElement("p"));
  message.id = "toast";
  message.className = "toast";
  message.setAttribute("role", "status");
  message.textContent = words;
  message.hidden = false;
  clearTimeout(showToast.timer);
  showToast.timer = setTimeout(() => (message.hidden = true), 5000);
}

function showError(words) {
  const box = document.getElementById("complaint") ?? document.createElement("p");
  box.id = "complaint";
  box.className = "complaint tone-stop";
  box.setAttribute("role", "alert");
  document.getElementById("main").prepend(box);
  box.textContent = words;
}

// Copy the text of the element that data-copy names.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-copy]");
  if (!button) return;
  const source = document.getElementById(button.dataset.copy);
  await navigator.clipboard.writeText((source.value ?? source.textContent).trim());
  showToast(button.dataset.copied ?? "Copied");
});

// Copy the text of the page that a link with data-fetch leads to. Without a clipboard, the link opens the page.
document.addEventListener("click", async (event) => {
  const link = event.target.closest("[data-fetch]");
  if (!link || !navigator.clipboard || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  const answer = await fetch(link.href);
  if (!answer.ok) return location.assign(link.href);
  await navigator.clipboard.writeText(await answer.text());
  showToast(link.dataset.fetch);
});

// Show the details of a row, which htmx loads, below the row. Hide them if they are shown already.
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

// Show the time that is left until each moment on the page.
function updateCountdowns() {
  for (const clock of document.querySelectorAll("time[data-countdown]")) {
    const seconds = Math.max(0, Math.round((new Date(clock.dateTime) - Date.now()) / 1000));
    const parts = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
    const [hours, minutes, rest] = parts.map((part) => String(part).padStart(2, "0"));
    const bar = document.getElementById(clock.dataset.countdown || "none");
    if (bar) bar.value = seconds;
    clock.textContent = parts[0] ? `${Number(hours)}:${minutes}:${rest}` : `${Number(minutes)}:${rest}`;
  }
}

// Close a question that is open in the page, and return the link that opened it.
function closeQuestion(question) {
  const questionLink = document.querySelector(`[data-asks][hx-target="#${question.id}"][aria-expanded=true]`);
  questionLink?.setAttribute("aria-expanded", "false");
  question.replaceChildren();
  return questionLink;
}

// When a question opens, close the other questions and move the focus into it.
document.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (!detail.target.matches(".question")) return;
  for (const other of document.querySelectorAll(".question:not(:empty)")) if (other !== detail.target) closeQuestion(other);
  for (const questionLink of document.querySelectorAll("[data-asks]")) {
    questionLink.setAttribute("aria-expanded", questionLink === detail.requestConfig.elt);
  }
  const first = detail.target.querySelector("input:not([type=hidden]), textarea, select") ?? detail.target.querySelector("h2, h3");
  if (first?.matches("h2, h3")) first.tabIndex = -1;
  first?.focus();
});

document.addEventListener("click", (event) => {
  const backLink = event.target.closest("[data-back]");
  const focusTarget = backLink && closeQuestion(backLink.closest(".question"));
  if (!focusTarget) return;
  event.preventDefault();
  focusTarget.focus();
});

document.addEventListener("keydown", (event) => {
  const question = event.key === "Escape" && event.target.closest?.(".question");
  if (question) closeQuestion(question)?.focus();
});

function collapseQuestionLinks() {
  for (const questionLink of document.querySelectorAll("[data-asks]:not([aria-expanded])")) questionLink.setAttribute("aria-expanded", "false");
}

// Do not update a part of the page while the page is hidden or a person uses the part. This is checked before the
// request and again before the swap, because the person might start to use the part during the request.
let isPressed = false;
addEventListener("pointerdown", () => (isPressed = true));
for (const end of ["pointerup", "pointercancel"]) addEventListener(end, () => (isPressed = false));
const IN_USE =
  ".ask, details[open], .table-tick :checked, [data-opens][aria-expanded=true], [aria-disabled=true], .htmx-request:not([data-updates])";
for (const htmxEvent of ["htmx:beforeRequest", "htmx:beforeSwap"]) {
  document.addEventListener(htmxEvent, (event) => {
    if (!event.detail.requestConfig.elt.matches("[data-updates]")) return;
    if (document.hidden || isPressed || event.detail.target.querySelector(IN_USE)) event.preventDefault();
  });
}

// Submit a form only once, and show on its button that it is being sent.
document.addEventListener("submit", (event) => {
  const button = event.submitter;
  if (!button?.dataset.busy) return;
  if (button.getAttribute("aria-disabled") === "true") return event.preventDefault();
  button.setAttribute("aria-disabled", "true");
  button.textContent = button.dataset.busy;
});
addEventListener("pageshow", ({ persisted }) => persisted && location.reload());

// Show an error on the page if an htmx request fails.
for (const failure of ["htmx:responseError", "htmx:sendError", "htmx:timeout"]) {
  document.addEventListener(failure, ({ detail }) => {
    const id = detail.xhr?.getResponseHeader?.("X-Request-Id");
    showError(id ? `That did not work. Load the page again, or quote ${id} to support.` : "No connection. Try again.");
  });
}

function updateControls() {
  collapseQuestionLinks();
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
  updateCountdowns();
}

document.addEventListener("htmx:afterSettle", updateControls);
setInterval(updateCountdowns, 1000);
updateControls();

// Keep the colour picker and the field with the colour's code in step.
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

// Refuse a file that is too large before it is sent. A browser that is still sending might not show the server's
// answer.
document.addEventListener("change", (event) => {
  const field = event.target.closest("[data-max-bytes]");
  if (!field) return;
  const isTooLarge = [...field.files].some((file) => file.size > Number(field.dataset.maxBytes));
  field.setCustomValidity(isTooLarge ? field.dataset.tooLarge : "");
  field.reportValidity();
});
