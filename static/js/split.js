// Shows what each bears while somebody changes how it is split. The server works it out anew, and judges it.
const form = document.querySelector(".split");
const panel = form.querySelector(".panel");
const { dataset: words } = panel;
const total = Number(words.total);
const digits = Number(words.digits);
const minimum = Number(words.minimum);
const unit = Number(words.unit); // a card can be charged multiples of it alone
const MAX_MATES = 19;
const NARROWEST = 4; // per cent of the bar, as in share_bar.py
const LETTER = 7;
const money = new Intl.NumberFormat(document.documentElement.lang, { style: "currency", currency: words.currency, currencyDisplay: "narrowSymbol", minimumFractionDigits: digits, maximumFractionDigits: digits });
const shown = (minor) => money.format(minor / 10 ** digits).replace("-", "\u2212");
const plain = new Intl.NumberFormat(document.documentElement.lang, { useGrouping: false, minimumFractionDigits: digits, maximumFractionDigits: digits });
const few = (minor) => (words.currency === "GBP" && minor < 100 ? words.pence.replace("{count}", minor) : shown(minor));

const yourName = document.getElementById("your-name");
const people = document.getElementById("people");
const steppers = panel.querySelectorAll("[data-step]");
const bar = panel.querySelector("[data-bar]");
const tally = panel.querySelector("[data-tally]");
const addMate = panel.querySelector("[data-add]");
const rows = () => [...panel.querySelectorAll("[data-row]")];
const one = (name) => panel.querySelector(`[data-${name}]`);
const isOwn = () => document.getElementById("split-own").checked;
const byItem = panel.querySelector("[data-items]");
const isByItem = () => byItem !== null && document.getElementById("split-item").checked;

function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Minor units, null for what is no amount.
function minorUnits(typed) {
  const found = typed.replace(/[\s\p{Sc}]/gu, "").match(/^(\d{1,9})(?:[.,](\d{1,3}))?$/);
  if (!found || (found[2] || "").length > digits) return null;
  return Number(found[1]) * 10 ** digits + Number((found[2] || "").padEnd(digits, "0") || 0);
}

const amountOf = (row) => minorUnits(row.querySelector(".own-amount").value) || 0;

// One more line for a mate; whatever is typed in the last one stays there alone.
function addRow() {
  const last = rows().pop();
  const row = last.cloneNode(true);
  const position = rows().length + 2;
  row.className = "mate not-equal not-own";
  row.querySelector(".own-error")?.remove();
  for (const field of row.querySelectorAll("input")) {
    const label = row.querySelector(`[for="${field.id}"]`);
    field.id = `${field.name}-${position}`;
    field.value = "";
    field.removeAttribute("aria-invalid");
    field.removeAttribute("aria-describedby");
    label.htmlFor = field.id;
    label.textContent = label.textContent.replace(/\d+/, position);
  }
  say(row.querySelector(".monogram"), String(position));
  last.after(row);
  return row;
}

// Equally: what does not divide is the lead's.
function showEqual() {
  const count = people.validity.valid ? Number(people.value) : 0;
  const mates = count - 1;
  while (rows().length < mates) addRow();
  rows().forEach((row, index) => row.classList.toggle("not-equal", index >= Math.max(mates, 1)));
  panel.classList.toggle("panel-many", count > 8);
  const each = count ? Math.floor(total / count / unit) * unit : 0;
  const more = count ? total - each * count : 0;
  say(one("yours"), count ? shown(each + more) : "");
  for (const amount of panel.querySelectorAll("[data-each]")) say(amount, count ? shown(each) : "");
  say(one("note"), more ? words.more.replace("{amount}", few(more)) : "");
  say(one("mates"), one("mates").dataset.words.replace("{count}", mates));
  say(one("count"), String(mates));
  steppers[0].disabled = count <= Number(people.min);
  steppers[1].disabled = count >= Number(people.max);
  panel.querySelector("[data-at-most]").hidden = count < Number(people.max);
  return count ? [each + more, ...Array(mates).fill(each)] : [];
}

// Own amounts: what is left for the lead.
function showOwn() {
  const asked = rows().map(amountOf);
  const left = total - asked.reduce((sum, amount) => sum + amount, 0);
  say(one("left"), shown(Math.max(left, 0)));
  rows().forEach((row) => {
    if (row.querySelector("[name=name]").value || row.querySelector(".own-amount").value) row.classList.remove("not-own");
  });
  addMate.hidden = rows().filter((row) => !row.classList.contains("not-own")).length >= MAX_MATES;
  return [left, ...asked];
}

// By item: units and a part of the shared lines, rounded down as in checkout/split/item_amounts.py. Returns the amounts of
// the lead, the mates and the free units.
function showItems() {
  const lines = [...byItem.querySelectorAll("[data-line]")].map((line) => {
    const inputs = [...line.querySelectorAll("input")];
    const counts = inputs.map((input) => input.value).join(" ").split(" ").map((text) => Number(text) || 0);
    const free = Math.max(0, Number(line.dataset.quantity) - counts.reduce((sum, count) => sum + count, 0));
    if (inputs[0].type === "number") inputs.forEach((input, index) => { input.max = counts[index] + free; });
    const shown = line.querySelector("[data-line-free]");
    if (shown) say(shown, String(free));
    return { price: Number(line.dataset.price), counts, free };
  });
  const goodsOf = (count) => lines.reduce((sum, line) => sum + line.price * (count(line) || 0), 0);
  const { goods, shared } = byItem.dataset;
  const cost = (sum) => Math.floor((sum + Math.floor((Number(shared) * sum) / Number(goods))) / unit) * unit;
  const mates = rows().map((_, index) => cost(goodsOf((line) => line.counts[index + 1])));
  const free = cost(goodsOf((line) => line.free));
  const left = total - free - mates.reduce((sum, amount) => sum + amount, 0);
  const more = left - cost(goodsOf((line) => line.counts[0]));
  rows().forEach((row, index) => say(row.querySelector("[data-item-cost]"), shown(mates[index])));
  say(one("item-yours"), shown(Math.max(left, 0)));
  say(one("item-note"), more > 0 ? words.more.replace("{amount}", few(more)) : "");
  const units = lines.reduce((sum, line) => sum + line.free, 0);
  one("free-units").hidden = units === 0;
  say(one("free-count"), String(units));
  say(one("free-cost"), shown(free));
  return [left, ...mates, free];
}

// From equal shares to own amounts: each begins with the equal share, so that only what differs is typed.
function beginWithEqual() {
  const count = people.validity.valid ? Number(people.value) : 0;
  if (!isOwn() || !count || rows().some((row) => row.querySelector(".own-amount").value.trim())) return;
  const each = Math.floor(total / count / unit) * unit;
  rows().slice(0, count - 1).forEach((row) => {
    row.querySelector(".own-amount").value = plain.format(each / 10 ** digits);
    row.classList.remove("not-own");
  });
}

function tell(left) {
  const typed = rows().map((row) => row.querySelector(".own-amount").value.trim()).filter(Boolean);
  const hasAmounts = rows().every((row) => !row.querySelector("[name=name]").value.trim() || row.querySelector(".own-amount").value.trim());
  const isAsked = hasAmounts && (typed.length > 0 || !document.getElementById("not-saved"));
  const isRight = !isOwn() || (isAsked && left >= 0 && typed.map(minorUnits).every((amount) => amount >= minimum && amount % unit === 0));
  tally.classList.toggle("tally-off", !isRight);
  const use = tally.querySelector("use");
  use.setAttribute("href", use.getAttribute("href").replace(/#.*/, isRight ? "#check" : "#alert"));
  const over = isOwn() && left < 0;
  panel.classList.toggle("panel-over", over);
  bar.classList.toggle("share-bar-over", over);
  say(one("tally-words"), over ? words.over.replace("{more}", shown(-left)) : isRight ? words.addsUp : words.look);
  say(one("sum"), words.sum.replace("{sum}", shown(over ? total - left : total)).replace("{total}", shown(total)));
}

// A part of the bar for each person, as wide as what they bear.
function draw(amounts) {
  const sum = amounts.reduce((before, amount) => before + Math.max(amount, 0), 0); // more than the total if it is too much
  const exact = amounts.map((amount) => (100 * Math.max(amount, 0)) / sum);
  const borne = exact.filter((width) => width > 0);
  const equal = 100 / borne.length;
  const smallest = Math.min(...borne);
  const tooNarrow = Math.min(NARROWEST, equal) - smallest;
  const nearer = tooNarrow > 0 ? tooNarrow / (equal - smallest) : 0;
  const letters = [...panel.querySelectorAll(".sharers [data-row] .monogram, .sharers > :first-child .monogram")].map((monogram) => monogram.textContent);
  if (isByItem()) letters[amounts.length - 1] = words.free;
  const model = bar.querySelector("svg");
  bar.toggleAttribute("hidden", !amounts.length);
  if (!amounts.length) return;
  let x = 0;
  bar.replaceChildren(...exact.map((width, index) => {
    const piece = model.cloneNode(true);
    const drawn = width > 0 ? width + nearer * (equal - width) : 0;
    piece.setAttribute("x", `${x}%`);
    piece.setAttribute("width", `${drawn}%`);
    piece.querySelector("text").textContent = drawn >= LETTER ? letters[index] : "";
    x += drawn;
    return piece;
  }));
  bar.classList.toggle("share-bar-many", amounts.length > 8);
}

function show() {
  [words.you, ...rows().map((_, index) => String(index + 2))].forEach((otherwise, index) => {
    const row = index ? rows()[index - 1] : yourName.closest("li");
    const letter = [...row.querySelector("input").value.trim()][0] || (index ? otherwise : [...otherwise][0]);
    say(row.querySelector(".monogram"), letter.toUpperCase());
  });
  const equal = showEqual();
  const own = showOwn();
  const items = byItem ? showItems() : [];
  bar.classList.toggle("share-bar-free", isByItem());
  draw(isByItem() ? items : isOwn() ? own : equal);
  tell(own[0]);
}

for (const button of steppers) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const wanted = (Number(people.value) || 1) + Number(button.dataset.step);
    people.value = Math.min(people.max, Math.max(people.min, wanted));
    show();
  });
}
addMate.addEventListener("click", (event) => {
  event.preventDefault();
  const row = panel.querySelector(".not-own") || addRow();
  row.classList.remove("not-own");
  show();
  row.querySelector("input").focus();
});
one("names").addEventListener("click", (event) => {
  event.preventDefault();
  panel.classList.add("panel-names");
  panel.querySelector("[name=name]").focus();
});
// What the notice was about is put right: nothing is to blame any more.
function unblame() {
  for (const amount of panel.querySelectorAll("[aria-describedby=not-saved]")) {
    amount.removeAttribute("aria-invalid");
    amount.removeAttribute("aria-describedby");
  }
}
form.addEventListener("input", (event) => {
  show();
  if (event.target.matches(".own-amount") && !tally.matches(".tally-off")) unblame();
  event.target.scrollIntoView({ block: "nearest" }); // not below what sticks to the screen's ends
});
form.addEventListener("change", ({ target }) => {
  const minor = target.classList.contains("own-amount") ? minorUnits(target.value) : null;
  if (minor !== null) target.value = plain.format(minor / 10 ** digits);
});

// Mates are asked by a name: whoever shares says theirs.
const nameError = document.getElementById("your-name-error");
form.addEventListener("submit", (event) => {
  const { submitter } = event; // Safari before 15.4 does not say it: then the server judges
  if (!submitter || submitter.name === "split" || yourName.value.trim()) return;
  event.preventDefault();
  nameError.hidden = false;
  yourName.setAttribute("aria-invalid", "true");
  yourName.setAttribute("aria-describedby", nameError.id);
  yourName.focus();
});
yourName.addEventListener("input", () => {
  nameError.hidden = true;
  yourName.removeAttribute("aria-invalid");
  yourName.removeAttribute("aria-describedby");
});
form.addEventListener("change", ({ target }) => {
  if (target.name !== "split") return;
  beginWithEqual();
  show();
});
addEventListener("pageshow", show); // a browser that goes back brings back what was typed
