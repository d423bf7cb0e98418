// Show a notice two minutes before the sign-in ends. Its button extends the sign-in.
const session = document.querySelector("[data-stay]");
const WARN_SECONDS = 120; // before the end
let seconds = Number(session.dataset.stay);
let startedAt = Date.now();

function showNotice() {
  const secondsLeft = seconds - (Date.now() - startedAt) / 1000;
  session.hidden = secondsLeft > WARN_SECONDS;
  const sentence = session.querySelector("[data-ends]");
  if (secondsLeft <= 0 && sentence.textContent !== sentence.dataset.over) {
    sentence.textContent = sentence.dataset.over;
    session.querySelector("[data-extend]").hidden = true;
    session.querySelector("[data-again]")?.removeAttribute("hidden");
  }
}

session.querySelector("[data-extend]").addEventListener("click", async () => {
  const token = document.querySelector("[name=csrfmiddlewaretoken]").value;
  const answer = await fetch(session.dataset.action, { method: "POST", headers: { "X-CSRFToken": token } }).catch(() => null);
  if (answer?.status !== 200) return; // no connection, or the sign-in has ended; the payer can still send the form
  const { until, lasts, is_last: isLast } = await answer.json();
  const sentence = session.querySelector("[data-ends]");
  sentence.innerHTML = sentence.dataset.words.replace("{time}", until);
  session.querySelector("[data-extend]").hidden = isLast;
  document.dispatchEvent(new Event("stay:changed"));
  seconds = lasts;
  startedAt = Date.now();
  showNotice();
});
setInterval(showNotice, 1000);
document.addEventListener("visibilitychange", showNotice);
showNotice();
