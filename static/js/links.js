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
  document.getElementById("spoken").textContent = button.dataset.copied;
  if (words) button.classList.add("is-copied");
  else button.textContent = button.dataset.copied;
});

function reveal() {
  for (const tools of document.querySelectorAll("[data-url]")) {
    tools.querySelector("[data-share]").hidden = !navigator.share;
    tools.querySelector("[data-copy]").hidden = !navigator.clipboard;
  }
}

document.addEventListener("htmx:afterSwap", reveal);
reveal();
