// Share or copy a mate's link, or the group link with the text in its box. Without JavaScript, the payer can select and
// copy the address.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-share], [data-copy]");
  if (!button) return;
  const { url, words } = button.closest("[data-url]").dataset;
  document.getElementById("stay")?.click(); // the automatic return to the shop must not interrupt the lead
  if ("share" in button.dataset) {
    await navigator.share(words ? { text: words, url } : { url }).catch(() => {});
    return;
  }
  await navigator.clipboard.writeText(words ? `${words}\n${url}` : url);
  button.dataset.done = ""; // the style sheet shows a check mark instead of the icon, so the width stays the same
  document.getElementById("spoken").textContent = button.dataset.copied;
});

// "Not now" closes the question that contains it.
document.addEventListener("click", ({ target }) => {
  const details = target.closest("[data-close]")?.closest("details");
  if (!details) return;
  details.open = false;
  details.querySelector("summary").focus({ preventScroll: true });
});

function showSupportedButtons() {
  for (const button of document.querySelectorAll("[data-close]")) button.hidden = false;
  for (const button of document.querySelectorAll("[data-share]")) button.hidden = !navigator.share;
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
  document.querySelector(".one-link-ways")?.setAttribute("data-ready", "");
  document.querySelector(".one-link [data-copy]")?.classList.toggle("button-main", !navigator.share);
}

for (const change of ["bill:changed", "htmx:afterSwap", "htmx:oobAfterSwap"]) document.addEventListener(change, showSupportedButtons);
showSupportedButtons();
