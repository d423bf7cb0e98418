// On the admin's lists, show how many rows are ticked. Disable the button of an action that fits no ticked row.
function updateActions() {
  if (!document.querySelector(".action-select")) return;
  const ticked = [...document.querySelectorAll(".action-select:checked")];
  const buttons = [...document.querySelectorAll(".list-actions button[value]")];
  const countFitting = (button) =>
    ticked.filter((box) => !box.hasAttribute("data-fits") || box.dataset.fits.split(" ").includes(button.value)).length;
  for (const button of buttons) button.disabled = countFitting(button) === 0;
  for (const note of document.querySelectorAll("[data-ticked]")) {
    note.dataset.before ??= note.textContent;
    note.textContent = ticked.length ? summarize(ticked.length, buttons, countFitting) : note.dataset.before;
  }
}

// Return a sentence with the number of ticked rows and, if it differs, the number of rows that each action fits.
function summarize(ticked, buttons, countFitting) {
  const counts = buttons.map(countFitting);
  if (counts.every((fitCount) => fitCount === 0)) return `${ticked} ticked, 0 fit`;
  if (counts.every((fitCount) => fitCount === 0 || fitCount === ticked)) return `${ticked} ticked`;
  if (counts.length === 1) return `${ticked} ticked, ${counts[0]} fit${counts[0] === 1 ? "s" : ""}`;
  const byAction = buttons.map((button, index) => `${button.textContent.trim()} ${counts[index]}`);
  return `${ticked} ticked: ${byAction.filter((_, index) => counts[index]).join(", ")}`;
}

document.addEventListener("change", updateActions);
window.addEventListener("pageshow", updateActions);
