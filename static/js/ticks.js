// The lists of the admin: how many rows are ticked, and buttons that wait until one is.
function count() {
  if (!document.querySelector(".action-select")) return;
  const ticked = document.querySelectorAll(".action-select:checked").length;
  for (const words of document.querySelectorAll("[data-ticked]")) words.textContent = `, ${ticked} ticked`;
  for (const button of document.querySelectorAll(".list-actions button[value]")) button.disabled = ticked === 0;
}

document.addEventListener("change", count);
window.addEventListener("pageshow", count);
