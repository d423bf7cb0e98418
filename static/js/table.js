// Keep the screen awake while the lead shows the QR code, and update the list of people every two seconds.
const EVERY_MS = 2000;
const live = document.querySelector(".group-live");
let wakeLock;

async function stayAwake() {
  if (document.hidden || !navigator.wakeLock) return;
  wakeLock = await navigator.wakeLock.request("screen").catch(() => undefined);
}

async function updatePeople() {
  if (document.hidden) return;
  const answer = await fetch(live.dataset.poll, { headers: { "HX-Request": "true" } }).catch(() => undefined);
  if (!answer?.ok) return;
  if (answer.redirected) return void location.replace(answer.url); // no mate can take a share any more
  const newPeople = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("group-who");
  const people = document.getElementById("group-who");
  if (!newPeople || newPeople.textContent === people.textContent) return;
  const before = new Set([...people.children].map(readText));
  document.getElementById("spoken").textContent = [...newPeople.children].map(readText).filter((line) => !before.has(line)).join(", ");
  people.replaceWith(newPeople);
}

function readText(line) {
  return line.lastElementChild.textContent.replace(/\s+/g, " ").trim();
}

document.addEventListener("visibilitychange", () => {
  if (document.hidden) return;
  stayAwake();
  updatePeople();
});
setInterval(updatePeople, EVERY_MS);
stayAwake();
