// Sends or copies a mate's link, or the group's with the words that its box shows. Without script the address itself is there to be copied.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-share], [data-copy]");
  if (!button) return;
  const { url, words } = button.closest("[data-url]").dataset;
  document.getElementById("stay")?.click(); // nobody is led away while a link is sent
  if ("share" in button.dataset) {
    await navigator.share(words ? { text: words, url } : { url }).catch(() => {});
    return;
  }
  await navigator.clipboard.writeText(words ? `${words}\n${url}` : url);
  button.dataset.done = ""; // its icon turns to a check; it stays as wide as it is
  document.getElementById("spoken").textContent = button.dataset.copied;
});

function reveal() {
  for (const button of document.querySelectorAll("[data-share]")) button.hidden = !navigator.share;
  for (const button of document.querySelectorAll("[data-copy]")) button.hidden = !navigator.clipboard;
  document.querySelector(".one-link-ways")?.setAttribute("data-ready", "");
  document.querySelector(".one-link [data-copy]")?.classList.toggle("button-main", !navigator.share);
}

document.addEventListener("bill:changed", reveal);
reveal();
