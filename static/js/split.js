// Shows what each bears while somebody changes how it is split. The server works it out anew, and judges it.
const own = document.querySelector("[data-own]");
const total = Number(own.dataset.total);
const digits = Number(own.dataset.digits);
const minimum = Number(own.dataset.minimum);
const unit = Number(own.dataset.unit); // a card can be charged multiples of it alone
const money = new Intl.NumberFormat(document.documentElement.lang, { style: "currency", currency: own.dataset.currency, currencyDisplay: "narrowSymbol", minimumFractionDigits: digits, maximumFractionDigits: digits });
const shown = (minor) => money.format(minor / 10 ** digits).replace("-", "\u2212");

// Equally: what does not divide is the lead's.
const people = document.getElementById("people");
const preview = document.querySelector("[data-preview]");
const buttons = document.querySelectorAll("[data-step]");
const part = (name) => preview.querySelector(`[data-${name}]`);

function say(element, words) {
  if (element.textContent !== words) element.textContent = words;
}

function show() {
  const count = Number(people.value);
  preview.hidden = !people.validity.valid || !count;
  if (preview.hidden) return;
  const mates = count - 1;
  const each = Math.floor(total / count / unit) * unit;
  const more = total - each * count;
  const number = mates === 1 ? "one" : "many";
  say(part("yours"), shown(each + more));
  say(part("each"), shown(each));
  say(part("note"), part("note").dataset.words.replace("{more}", shown(more)));
  part("note").hidden = !more;
  say(part("times"), mates === 1 ? "2" : `\u00d7${mates}`);
  say(part("who"), part("who").dataset[number]);
  say(part("mates"), part("mates").dataset[number].replace("{count}", mates));
  [...part("bar").children].forEach((person, index) => (person.hidden = index >= count));
  part("bar").classList.toggle("share-bar-many", count > 8);
  buttons[0].disabled = count <= Number(people.min);
  buttons[1].disabled = count >= Number(people.max);
}

for (const button of buttons) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const wanted = (Number(people.value) || 1) + Number(button.dataset.step);
    people.value = Math.min(people.max, Math.max(people.min, wanted));
    show();
  });
}
people.addEventListener("input", show);
show();

// Own amounts: what is left for the lead, and whether it adds up, while somebody types.
const tally = own.querySelector("[data-tally]");
const ownBar = own.querySelector("[data-own-bar]");

// Minor units, null for what is no amount.
function minorUnits(typed) {
  const found = typed.replace(/[\s\p{Sc}]/gu, "").match(/^(\d{1,9})(?:[.,](\d{1,3}))?$/);
  if (!found || (found[2] || "").length > digits) return null;
  return Number(found[1]) * 10 ** digits + Number((found[2] || "").padEnd(digits, "0") || 0);
}

function add() {
  const fields = [...own.querySelectorAll(".own-amount")].filter((field) => field.value.trim());
  const amounts = fields.map((field) => minorUnits(field.value));
  const left = total - amounts.reduce((sum, amount) => sum + (amount || 0), 0);
  say(own.querySelector("[data-left]"), left < 0 ? "" : shown(left));
  const addsUp = left >= 0 && amounts.every((amount) => amount >= minimum && amount % unit === 0);
  const words = left < 0 ? own.dataset.more.replace("{more}", shown(-left)) : addsUp ? own.dataset.addsUp : own.dataset.look;
  tally.classList.toggle("tally-off", !addsUp);
  const use = tally.querySelector("use");
  use.setAttribute("href", use.getAttribute("href").replace(/#.*/, addsUp ? "#check" : "#alert"));
  say(tally.querySelector("[data-tally-words]"), words);
  draw(left);
}

// A part of the bar for each person, as wide as what they bear; one too thin for its letter goes without.
function draw(left) {
  const parts = [...own.querySelectorAll("[data-row]")].map((row) => [row.querySelector(".monogram").textContent, minorUnits(row.querySelector(".own-amount").value) || 0]);
  ownBar.hidden = left < 0;
  ownBar.replaceChildren(...[[ownBar.dataset.you, left], ...parts].map(([label, amount]) => {
    const piece = document.createElement("span");
    piece.textContent = label;
    piece.hidden = amount <= 0;
    piece.style.flexGrow = amount;
    piece.classList.toggle("share-bar-thin", amount / total < (label.length > 1 ? 0.14 : 0.07));
    return piece;
  }));
}

own.addEventListener("input", (event) => {
  if (event.target.name === "name") {
    const row = event.target.closest("[data-row]");
    const position = [...own.querySelectorAll("[data-row]")].indexOf(row) + 2;
    row.querySelector(".monogram").textContent = [...event.target.value.trim()][0]?.toUpperCase() || position;
  }
  add();
});
draw(total - [...own.querySelectorAll(".own-amount")].reduce((sum, field) => sum + (minorUnits(field.value) || 0), 0));
own.querySelector("[data-add]")?.addEventListener("click", (event) => {
  event.preventDefault();
  const rows = own.querySelectorAll("[data-row]");
  const row = rows[rows.length - 1].cloneNode(true);
  const position = rows.length + 2;
  row.querySelector(".own-error")?.remove();
  row.querySelector(".monogram").textContent = position;
  for (const field of row.querySelectorAll("input")) {
    field.id = `${field.name}-${position}`;
    field.value = "";
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
    field.previousElementSibling.htmlFor = field.id;
    field.previousElementSibling.textContent = field.previousElementSibling.textContent.replace(/\d+/, position - 1);
  }
  rows[rows.length - 1].after(row);
  row.querySelector("input").focus();
  if (position >= 20) event.currentTarget.remove();
});
