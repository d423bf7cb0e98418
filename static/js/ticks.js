// The lists of the admin: how many rows are ticked, and buttons that wait until one is that they fit.
function count() {
  if (!document.querySelector(".action-select")) return;
  const ticked = [...document.querySelectorAll(".action-select:checked")];
  const buttons = [...document.querySelectorAll(".list-actions button[value]")];
  const fitting = (button) =>
    ticked.filter((box) => !box.hasAttribute("data-fits") || box.dataset.fits.split(" ").includes(button.value)).length;
  for (const button of buttons) button.disabled = fitting(button) === 0;
  for (const words of document.querySelectorAll("[data-ticked]")) {
    words.dataset.before ??= words.textContent;
    words.textContent = ticked.length ? said(ticked.length, buttons, fitting) : words.dataset.before;
  }
}

// A verb that fits none of them waits: its count would say nothing.
function said(ticked, buttons, fitting) {
  const counts = buttons.map(fitting);
  if (counts.every((fits) => fits === 0)) return `${ticked} ticked, 0 fit`;
  if (counts.every((fits) => fits === 0 || fits === ticked)) return `${ticked} ticked`;
  if (counts.length === 1) return `${ticked} ticked, ${counts[0]} fit${counts[0] === 1 ? "s" : ""}`;
  const named = buttons.map((button, at) => `${button.textContent.trim()} ${counts[at]}`);
  return `${ticked} ticked: ${named.filter((_, at) => counts[at]).join(", ")}`;
}

document.addEventListener("change", count);
window.addEventListener("pageshow", count);
