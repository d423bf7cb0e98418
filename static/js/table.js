// While the code is held up: the screen stays awake, and who has come is shown within two seconds.
const LOOK_MS = 2000;
const live = document.querySelector(".group-live");
let lock;

async function stayAwake() {
  if (document.hidden || !navigator.wakeLock) return;
  lock = await navigator.wakeLock.request("screen").catch(() => undefined);
}

async function look() {
  if (document.hidden) return;
  const answer = await fetch(live.dataset.poll, { headers: { "HX-Request": "true" } }).catch(() => undefined);
  if (!answer?.ok) return;
  if (answer.redirected) return void location.replace(answer.url); // nobody can come any more
  const part = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("group-who");
  const shown = document.getElementById("group-who");
  if (!part || part.textContent === shown.textContent) return;
  const before = new Set([...shown.children].map(words));
  document.getElementById("spoken").textContent = [...part.children].map(words).filter((line) => !before.has(line)).join(", ");
  shown.replaceWith(part);
}

function words(line) {
  return line.lastElementChild.textContent.replace(/\s+/g, " ").trim();
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  stayAwake();
  look();
});
setInterval(look, LOOK_MS);
stayAwake();
