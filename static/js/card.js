// Groups the digits as they stand on the card, names its brand, sees a mistyped one, and lets one tap pay once.
const BRANDS = [
  [/^4/, "Visa"],
  [/^(5[1-5]|2[2-7])/, "Mastercard"],
  [/^3[47]/, "Amex"],
];
const form = document.getElementById("card-form");
const pay = document.getElementById("pay");
const payLabel = pay.innerHTML;

function groupNumber(digits) {
  const groups = /^3[47]/.test(digits) ? /^(\d{0,4})(\d{0,6})(\d{0,5}).*/ : /^(\d{0,4})(\d{0,4})(\d{0,4})(\d{0,4})(\d{0,3}).*/;
  return digits.match(groups).slice(1).filter(Boolean).join(" ");
}

// "829" means 08 / 29, and a hand or a browser may write the year as 2029.
function groupExpiry(digits) {
  const padded = /^[2-9]/.test(digits) ? `0${digits}` : digits;
  const [, month, year] = padded.match(/^(\d{0,2})(20\d{0,2}|\d{0,2})/);
  return year ? `${month} / ${year.replace(/^20(?=\d\d)/, "")}` : month;
}

// Rewrites a field in groups and leaves the caret behind the digit it stood behind.
function regroup(field, group) {
  const digitsBefore = field.value.slice(0, field.selectionStart).replace(/\D/g, "").length;
  const atEnd = field.selectionStart === field.value.length;
  field.value = group(field.value.replace(/\D/g, ""));
  if (atEnd) return;
  let caret = 0;
  for (let seen = 0; seen < digitsBefore && caret < field.value.length; caret++) if (/\d/.test(field.value[caret])) seen++;
  field.setSelectionRange(caret, caret);
}

form.elements.number.addEventListener("input", ({ target }) => {
  regroup(target, groupNumber);
  const brand = BRANDS.find(([start]) => start.test(target.value.replace(/ /g, "")));
  document.getElementById("card-brand").textContent = brand ? brand[1] : "";
});
form.elements.expiry.addEventListener("input", ({ target }) => regroup(target, groupExpiry));

// A card's last digit is worked out from the others (Luhn): most slips of a finger show before the number is sent.
function addsUp(digits) {
  const doubled = [...digits].reverse().map((digit, index) => digit * (index % 2 ? 2 : 1));
  return doubled.reduce((sum, value) => sum + (value > 9 ? value - 9 : value), 0) % 10 === 0;
}

const CHECKS = {
  number: (digits) => digits.length >= 12 && addsUp(digits),
  expiry: (digits) => /^(0[1-9]|1[0-2])\d\d$/.test(digits),
  code: (digits) => /^\d{3,4}$/.test(digits),
};

function unmark(name) {
  document.getElementById(`${name}-error`).hidden = true;
  form.elements[name].removeAttribute("aria-invalid");
  form.elements[name].removeAttribute("aria-describedby");
}

// Says below a field what is wrong with it; true if anything is.
function isWrong(name) {
  unmark(name);
  const field = form.elements[name];
  const error = document.getElementById(`${name}-error`);
  const digits = field.value.replace(/\D/g, "");
  if (CHECKS[name](digits)) return false;
  error.hidden = false;
  error.querySelector("span").textContent = digits ? error.dataset.mistyped : error.dataset.missing;
  field.setAttribute("aria-invalid", "true");
  field.setAttribute("aria-describedby", error.id);
  return true;
}

// In the sandbox, a tap on a test card fills the form.
function fillIn(number) {
  for (const [name, value] of Object.entries({ number, expiry: "12 / 49", code: "123" })) {
    form.elements[name].value = value;
    form.elements[name].dispatchEvent(new Event("input", { bubbles: true }));
  }
  pay.scrollIntoView({ block: "nearest" });
}

for (const code of document.querySelectorAll(".test-cards dt code")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "link";
  button.append(code.cloneNode(true));
  button.addEventListener("click", () => fillIn(code.textContent));
  code.replaceWith(button);
}

// The first test card pays. Another one is a tap in their list.
const useTestCard = document.getElementById("use-test-card");
if (useTestCard) {
  useTestCard.hidden = false;
  useTestCard.addEventListener("click", () => {
    fillIn(document.querySelector(".test-cards dt code").textContent);
    pay.focus();
  });
}

form.noValidate = true; // all that is wrong is said at once, and a browser says one thing at a time
for (const name of Object.keys(CHECKS)) {
  form.elements[name].addEventListener("input", () => unmark(name));
}

form.addEventListener("submit", (event) => {
  const wrong = Object.keys(CHECKS).filter(isWrong);
  if (wrong.length) {
    event.preventDefault();
    return form.elements[wrong[0]].focus();
  }
  if (pay.getAttribute("aria-disabled")) return event.preventDefault();
  pay.setAttribute("aria-disabled", "true");
  pay.textContent = pay.dataset.busy;
});
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) return location.reload(); // it may be paid by now
  pay.removeAttribute("aria-disabled");
  pay.innerHTML = payLabel;
});
