// Counts down to the moment when a new code may be asked for, then shows the button in the sentence's place.
const wait = document.querySelector("[data-resend-in]");

function showSecondsLeft(secondsLeft) {
  const seconds = String(secondsLeft % 60).padStart(2, "0");
  wait.querySelector("strong").textContent = `${Math.floor(secondsLeft / 60)}:${seconds}`;
}

if (wait) {
  const end = performance.now() + wait.dataset.resendIn * 1000;
  const timer = setInterval(() => {
    const secondsLeft = Math.ceil((end - performance.now()) / 1000);
    if (secondsLeft > 0) return showSecondsLeft(secondsLeft);
    clearInterval(timer);
    wait.hidden = true;
    document.querySelector(".resend").hidden = false;
  }, 250);
}
