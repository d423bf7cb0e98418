// Says two minutes before a sign-in ends when it does; a tap makes it last as long again.
const session = document.querySelector("[data-stay]");
const WARNED = 120; // seconds before the end
let seconds = Number(session.dataset.stay);
let since = Date.now();

function sayEnd() {
  const left = seconds - (Date.now() - since) / 1000;
  session.hidden = left > WARNED;
  const ends = session.querySelector("[data-ends]");
  if (left <= 0 && ends.textContent !== ends.dataset.over) {
    ends.textContent = ends.dataset.over;
    session.querySelector("[data-extend]").hidden = true;
    session.querySelector("[data-again]")?.removeAttribute("hidden");
  }
}

session.querySelector("[data-extend]").addEventListener("click", async () => {
  const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
  const answer = await fetch(session.dataset.action, { method: "POST", headers: { "X-CSRFToken": token } }).catch(() => null);
  if (answer?.status !== 200) return; // what is typed is kept all the same
  const { until, lasts, is_last: isLast } = await answer.json();
  const ends = session.querySelector("[data-ends]");
  ends.innerHTML = ends.dataset.words.replace("{time}", until);
  session.querySelector("[data-extend]").hidden = isLast;
  document.dispatchEvent(new Event("stay:changed"));
  seconds = lasts;
  since = Date.now();
  sayEnd();
});
setInterval(sayEnd, 1000);
document.addEventListener("visibilitychange", sayEnd);
sayEnd();
