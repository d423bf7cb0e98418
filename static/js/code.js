// Fill in the code from the SMS, if the browser can read it and the payer agrees. The browser only reads an SMS that
// names this page's host.
const field = document.getElementById("code");
if (field && "OTPCredential" in window) {
  const cancellation = new AbortController();
  field.form.addEventListener("submit", () => cancellation.abort());
  navigator.credentials.get({ otp: { transport: ["sms"] }, signal: cancellation.signal }).then(
    ({ code }) => {
      field.value = code;
      field.form.requestSubmit();
    },
    () => {}, // no SMS arrived, the payer refused, or the form was submitted
  );
}

// Count down until a new code can be requested. Then show the button instead, or make it the main button.
const waitNotice = document.querySelector("[data-resend-in]");

function showSecondsLeft(secondsLeft) {
  const seconds = String(secondsLeft % 60).padStart(2, "0");
  waitNotice.querySelector("strong").textContent = `${Math.floor(secondsLeft / 60)}:${seconds}`;
}

if (waitNotice) {
  const end = performance.now() + waitNotice.dataset.resendIn * 1000;
  const timer = setInterval(() => {
    const secondsLeft = Math.ceil((end - performance.now()) / 1000);
    if (secondsLeft > 0) return showSecondsLeft(secondsLeft);
    clearInterval(timer);
    waitNotice.hidden = true;
    const resend = document.querySelector(".resend");
    if (resend) resend.hidden = false;
    document.querySelector("[data-later]")?.classList.replace("button-wide", "button-main");
  }, 250);
}
