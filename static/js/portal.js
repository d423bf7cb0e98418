// What the portal does beyond links and forms: the menu on a phone, copying, countdowns, dialogs of the browser.
// Every part of it works without this file: the menu is a page, what is copied can be selected.
const menu = document.querySelector(".side-menu");

function openMenu(isOpen) {
  document.querySelector(".side").classList.toggle("is-open", isOpen);
  menu.setAttribute("aria-expanded", isOpen);
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
    clock.textContent = parts[0] ? `${Number(hours)}:${minutes}:${rest}` : `${Number(minutes)}:${rest}`;
  }
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
    complain(id ? `That did not work. Load the page again, or tell support ${id}.` : "No connection. Try again.");
  });
}

function reveal() {
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
  countDown();
}

document.addEventListener("htmx:afterSettle", reveal);
setInterval(countDown, 1000);
reveal();
