// Sends or copies a mate's link. Without script the address itself is there to be copied.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("[data-share], [data-copy]");
  if (!button) return;
  const url = button.closest("[data-url]").dataset.url;
  document.getElementById("stay")?.click(); // nobody is led away while a link is sent
  if ("share" in button.dataset) {
    await navigator.share({ url }).catch(() => {});
    return;
  }
  await navigator.clipboard.writeText(url);
  button.textContent = document.getElementById("spoken").textContent = button.dataset.copied;
});

function reveal() {
  for (const tools of document.querySelectorAll("[data-url]")) {
    tools.querySelector("[data-share]").hidden = !navigator.share;
    tools.querySelector("[data-copy]").hidden = !navigator.clipboard;
  }
}

document.addEventListener("htmx:afterSwap", reveal);
reveal();
