// Fills in the code of a text that names this page's host, where the browser reads it and the payer lets it.
const field = document.getElementById("code");
if (field && "OTPCredential" in window) {
  const ended = new AbortController();
  field.form.addEventListener("submit", () => ended.abort());
  navigator.credentials.get({ otp: { transport: ["sms"] }, signal: ended.signal }).then(
    ({ code }) => {
      field.value = code;
      field.form.requestSubmit();
    },
    () => {}, // nothing came, or the payer types it
  );
}

// Counts down to the moment when a new code may be asked for, then shows the button in the sentence's place, or makes it loud.
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
    const resend = document.querySelector(".resend");
    if (resend) resend.hidden = false;
    document.querySelector("[data-later]")?.classList.replace("button-wide", "button-main");
  }, 250);
}
