// Format the card's digits as on the card, show its brand, report typing errors, and submit the form only once.
const BRANDS = [
  [/^4/, "Visa"],
  [/^(5[1-5]|2[2-7])/, "Mastercard"],
  [/^3[47]/, "Amex"],
];
const form = document.getElementById("card-form");
const pay = document.getElementById("pay");
const payLabel = pay.innerHTML;

function formatNumber(digits) {
  const groups = /^3[47]/.test(digits) ? /^(\d{0,4})(\d{0,6})(\d{0,5}).*/ : /^(\d{0,4})(\d{0,4})(\d{0,4})(\d{0,4})(\d{0,3}).*/;
  return digits.match(groups).slice(1).filter(Boolean).join(" ");
}

// Format the expiry date as "08 / 29". People can also type "829", or 2029 as the year.
function formatExpiry(digits) {
  const padded = /^[2-9]/.test(digits) ? `0${digits}` : digits;
  const [, month, year] = padded.match(/^(\d{0,2})(20\d{0,2}|\d{0,2})/);
  return year ? `${month} / ${year.replace(/^20(?=\d\d)/, "")}` : month;
}

// Rewrite a field in groups of digits, and keep the caret behind the same digit.
function reformatField(field, format) {
  const digitsBefore = field.value.slice(0, field.selectionStart).replace(/\D/g, "").length;
  const atEnd = field.selectionStart === field.value.length;
  field.value = format(field.value.replace(/\D/g, ""));
  if (atEnd) return;
  let caret = 0;
  for (let seen = 0; seen < digitsBefore && caret < field.value.length; caret++) if (/\d/.test(field.value[caret])) seen++;
  field.setSelectionRange(caret, caret);
}

form.elements.number.addEventListener("input", ({ target }) => {
  reformatField(target, formatNumber);
  const brand = BRANDS.find(([start]) => start.test(target.value.replace(/ /g, "")));
  document.getElementById("card-brand").textContent = brand ? brand[1] : "";
});
form.elements.expiry.addEventListener("input", ({ target }) => reformatField(target, formatExpiry));

// Return whether the last digit matches the others (Luhn algorithm). For most mistyped numbers it does not.
function passesLuhn(digits) {
  const doubled = [...digits].reverse().map((digit, index) => digit * (index % 2 ? 2 : 1));
  return doubled.reduce((sum, value) => sum + (value > 9 ? value - 9 : value), 0) % 10 === 0;
}

const CHECKS = {
  number: (digits) => digits.length >= 12 && passesLuhn(digits),
  expiry: (digits) => /^(0[1-9]|1[0-2])\d\d$/.test(digits),
  code: (digits) => /^\d{3,4}$/.test(digits),
};

function clearError(name) {
  document.getElementById(`${name}-error`).hidden = true;
  form.elements[name].removeAttribute("aria-invalid");
  form.elements[name].removeAttribute("aria-describedby");
}

// Show the error below a field if its value is wrong, and return whether it is wrong.
function showErrorIfWrong(name) {
  clearError(name);
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

// Fill in the form with one of the sandbox's test cards.
function fillInTestCard(number) {
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
  button.addEventListener("click", () => fillInTestCard(code.textContent));
  code.replaceWith(button);
}

// The button fills in the first test card, whose payment succeeds. The list offers the other cards.
const useTestCard = document.getElementById("use-test-card");
if (useTestCard) {
  useTestCard.hidden = false;
  useTestCard.addEventListener("click", () => {
    fillInTestCard(document.querySelector(".test-cards dt code").textContent);
    pay.focus();
  });
}

form.noValidate = true; // a browser would show only one error at a time
for (const name of Object.keys(CHECKS)) {
  form.elements[name].addEventListener("input", () => clearError(name));
}

form.addEventListener("submit", (event) => {
  const wrong = Object.keys(CHECKS).filter(showErrorIfWrong);
  if (wrong.length) {
    event.preventDefault();
    return form.elements[wrong[0]].focus();
  }
  if (pay.getAttribute("aria-disabled")) return event.preventDefault();
  pay.setAttribute("aria-disabled", "true");
  pay.textContent = pay.dataset.busy;
});
addEventListener("pageshow", ({ persisted }) => {
  if (persisted) return location.reload(); // the order might be paid already
  pay.removeAttribute("aria-disabled");
  pay.innerHTML = payLabel;
});
