// Show each person's amount while the lead changes the split. The server calculates and validates the amounts again.
const form = document.querySelector(".split");
const panel = form.querySelector(".panel");
const { dataset: words } = panel;
const total = Number(words.total);
const digits = Number(words.digits);
const minimum = Number(words.minimum);
const unit = Number(words.unit); // a card can only be charged multiples of this amount
const MAX_MATES = 19;
// In per cent of the bar, as in hosted_page/share_bar.py.
const MIN_WIDTH = 4;
const MIN_LETTER_WIDTH = 7;
const money = new Intl.NumberFormat(document.documentElement.lang, { style: "currency", currency: words.currency, currencyDisplay: "narrowSymbol", minimumFractionDigits: digits, maximumFractionDigits: digits });
const formatAmount = (minor) => money.format(minor / 10 ** digits).replace("-", "\u2212");
const plainNumber = new Intl.NumberFormat(document.documentElement.lang, { useGrouping: false, minimumFractionDigits: digits, maximumFractionDigits: digits });
const formatRemainder = (minor) => (words.currency === "GBP" && minor < 100 ? words.pence.replace("{count}", minor) : formatAmount(minor));

const yourName = document.getElementById("your-name");
const people = document.getElementById("people");
const steppers = panel.querySelectorAll("[data-step]");
const bar = panel.querySelector("[data-bar]");
const tallyLine = panel.querySelector("[data-tally]");
const addMate = panel.querySelector("[data-add]");
const findRows = () => [...panel.querySelectorAll("[data-row]")];
const findPart = (name) => panel.querySelector(`[data-${name}]`);
const isByAmount = () => document.getElementById("split-own").checked;
const byItem = panel.querySelector("[data-items]");
const isByItem = () => byItem !== null && document.getElementById("split-item").checked;

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

// Return a typed amount in minor units, or null if it is not an amount.
function minorUnits(typed) {
  const match = typed.replace(/[\s\p{Sc}]/gu, "").match(/^(\d{1,9})(?:[.,](\d{1,3}))?$/);
  if (!match || (match[2] || "").length > digits) return null;
  return Number(match[1]) * 10 ** digits + Number((match[2] || "").padEnd(digits, "0") || 0);
}

const readAmount = (row) => minorUnits(row.querySelector(".own-amount").value) || 0;

// Add an empty line for a mate, as a copy of the last line.
function addRow() {
  const last = findRows().pop();
  const row = last.cloneNode(true);
  const position = findRows().length + 2;
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
  setText(row.querySelector(".monogram"), String(position));
  last.after(row);
  return row;
}

// Show equal shares, and return the amounts. The lead bears the remainder of the division.
function showEqual() {
  const count = people.validity.valid ? Number(people.value) : 0;
  const mates = count - 1;
  while (findRows().length < mates) addRow();
  findRows().forEach((row, index) => row.classList.toggle("not-equal", index >= Math.max(mates, 1)));
  panel.classList.toggle("panel-many", count > 8);
  const each = count ? Math.floor(total / count / unit) * unit : 0;
  const more = count ? total - each * count : 0;
  setText(findPart("yours"), count ? formatAmount(each + more) : "");
  for (const amount of panel.querySelectorAll("[data-each]")) setText(amount, count ? formatAmount(each) : "");
  setText(findPart("note"), more ? words.more.replace("{amount}", formatRemainder(more)) : "");
  setText(findPart("mates"), findPart("mates").dataset.words.replace("{count}", mates));
  setText(findPart("count"), String(mates));
  steppers[0].disabled = count <= Number(people.min);
  steppers[1].disabled = count >= Number(people.max);
  panel.querySelector("[data-at-most]").hidden = count < Number(people.max);
  return count ? [each + more, ...Array(mates).fill(each)] : [];
}

// Show the part that remains for the lead after the mates' typed amounts, and return all amounts.
function showOwn() {
  const mateAmounts = findRows().map(readAmount);
  const left = total - mateAmounts.reduce((sum, amount) => sum + amount, 0);
  setText(findPart("left"), formatAmount(Math.max(left, 0)));
  findRows().forEach((row) => {
    if (row.querySelector("[name=name]").value || row.querySelector(".own-amount").value) row.classList.remove("not-own");
  });
  addMate.hidden = findRows().filter((row) => !row.classList.contains("not-own")).length >= MAX_MATES;
  return [left, ...mateAmounts];
}

// Show a split by item, and return the amounts of the lead, the mates and the free units. Each amount is the price of
// the units plus a part of the lines that all share.
function showItems() {
  const lines = [...byItem.querySelectorAll("[data-line]")].map((line) => {
    const inputs = [...line.querySelectorAll("input")];
    const quantity = Number(line.dataset.quantity);
    const counts = inputs.map((input) => input.value).join(" ").split(" ").map((text) => Math.min(quantity, Math.max(0, Math.trunc(Number(text)) || 0)));
    const free = Math.max(0, quantity - counts.reduce((sum, count) => sum + count, 0));
    if (inputs[0].type === "number") inputs.forEach((input, index) => { input.max = counts[index] + free; });
    const freeCount = line.querySelector("[data-line-free]");
    if (freeCount) {
      setText(freeCount, String(free));
      line.querySelector("[data-free-one]").hidden = free > 1;
      line.querySelector("[data-free-several]").hidden = free <= 1;
    }
    return { price: Number(line.dataset.price), counts, free };
  });
  const sumGoods = (count) => lines.reduce((sum, line) => sum + line.price * (count(line) || 0), 0);
  const roundCost = (sum) => costOfUnits(sum, byItem.dataset, unit);
  const mates = findRows().map((_, index) => roundCost(sumGoods((line) => line.counts[index + 1])));
  const free = roundCost(sumGoods((line) => line.free));
  const left = total - free - mates.reduce((sum, amount) => sum + amount, 0);
  const more = left - roundCost(sumGoods((line) => line.counts[0]));
  findRows().forEach((row, index) => setText(row.querySelector("[data-item-cost]"), formatAmount(mates[index])));
  setText(findPart("item-yours"), formatAmount(Math.max(left, 0)));
  setText(findPart("item-note"), more > 0 ? words.more.replace("{amount}", formatRemainder(more)) : "");
  const units = lines.reduce((sum, line) => sum + line.free, 0);
  findPart("free-units").hidden = units === 0;
  setText(findPart("free-count"), String(units));
  setText(findPart("free-cost"), formatAmount(free));
  return [left, ...mates, free];
}

// When the lead changes from equal shares to typed amounts, fill in the equal shares, so that the lead types only the
// amounts that differ.
function beginWithEqual() {
  const count = people.validity.valid ? Number(people.value) : 0;
  if (!isByAmount() || !count || findRows().some((row) => row.querySelector(".own-amount").value.trim())) return;
  const each = Math.floor(total / count / unit) * unit;
  findRows().slice(0, count - 1).forEach((row) => {
    row.querySelector(".own-amount").value = plainNumber.format(each / 10 ** digits);
    row.classList.remove("not-own");
  });
}

function showTally(left) {
  const typed = findRows().map((row) => row.querySelector(".own-amount").value.trim()).filter(Boolean);
  const hasAmounts = findRows().every((row) => !row.querySelector("[name=name]").value.trim() || row.querySelector(".own-amount").value.trim());
  const isAsked = hasAmounts && (typed.length > 0 || !document.getElementById("not-saved"));
  const isRight = !isByAmount() || (isAsked && left >= 0 && typed.map(minorUnits).every((amount) => amount >= minimum && amount % unit === 0));
  tallyLine.classList.toggle("tally-off", !isRight);
  const use = tallyLine.querySelector("use");
  use.setAttribute("href", use.getAttribute("href").replace(/#.*/, isRight ? "#check" : "#alert"));
  const isOver = isByAmount() && left < 0;
  panel.classList.toggle("panel-over", isOver);
  bar.classList.toggle("share-bar-over", isOver);
  setText(findPart("tally-words"), isOver ? words.over.replace("{more}", formatAmount(-left)) : isRight ? words.addsUp : words.look);
  setText(findPart("sum"), words.sum.replace("{sum}", formatAmount(isOver ? total - left : total)).replace("{total}", formatAmount(total)));
}

// Draw the bar with one part for each person. The width of a part shows the amount that the person bears.
function drawBar(amounts) {
  const sum = amounts.reduce((before, amount) => before + Math.max(amount, 0), 0); // can exceed the total
  const exact = amounts.map((amount) => (100 * Math.max(amount, 0)) / sum);
  const positive = exact.filter((width) => width > 0);
  const equal = 100 / positive.length;
  const smallest = Math.min(...positive);
  const tooNarrow = Math.min(MIN_WIDTH, equal) - smallest;
  const shift = tooNarrow > 0 ? tooNarrow / (equal - smallest) : 0;
  const letters = [...panel.querySelectorAll(".sharers [data-row] .monogram, .sharers > :first-child .monogram")].map((monogram) => monogram.textContent);
  if (isByItem()) letters[amounts.length - 1] = words.free;
  const model = bar.querySelector("svg");
  bar.toggleAttribute("hidden", !amounts.length);
  if (!amounts.length) return;
  let x = 0;
  bar.replaceChildren(...exact.map((width, index) => {
    const piece = model.cloneNode(true);
    const drawn = width > 0 ? width + shift * (equal - width) : 0;
    piece.setAttribute("x", `${x}%`);
    piece.setAttribute("width", `${drawn}%`);
    piece.querySelector("text").textContent = drawn >= MIN_LETTER_WIDTH ? letters[index] : "";
    x += drawn;
    return piece;
  }));
  bar.classList.toggle("share-bar-many", amounts.length > 8);
}

function showSplit() {
  [words.you, ...findRows().map((_, index) => String(index + 2))].forEach((fallback, index) => {
    const row = index ? findRows()[index - 1] : yourName.closest("li");
    const letter = [...row.querySelector("input").value.trim()][0] || (index ? fallback : [...fallback][0]);
    setText(row.querySelector(".monogram"), letter.toUpperCase());
  });
  const equal = showEqual();
  const own = showOwn();
  const items = byItem ? showItems() : [];
  bar.classList.toggle("share-bar-free", isByItem());
  drawBar(isByItem() ? items : isByAmount() ? own : equal);
  showTally(own[0]);
}

for (const button of steppers) {
  button.hidden = false;
  button.addEventListener("click", () => {
    const wanted = (Number(people.value) || 1) + Number(button.dataset.step);
    people.value = Math.min(people.max, Math.max(people.min, wanted));
    showSplit();
  });
}
addMate.addEventListener("click", (event) => {
  event.preventDefault();
  const row = panel.querySelector(".not-own") || addRow();
  row.classList.remove("not-own");
  showSplit();
  row.querySelector("input").focus();
});
findPart("names").addEventListener("click", (event) => {
  event.preventDefault();
  panel.classList.add("panel-names");
  panel.querySelector("[name=name]").focus();
});
// Remove the error marks from the amounts to which the notice above the form refers.
function clearBlame() {
  for (const amount of panel.querySelectorAll("[aria-describedby=not-saved]")) {
    amount.removeAttribute("aria-invalid");
    amount.removeAttribute("aria-describedby");
  }
}
form.addEventListener("input", (event) => {
  showSplit();
  if (event.target.matches(".own-amount") && !tallyLine.matches(".tally-off")) clearBlame();
  event.target.scrollIntoView({ block: "nearest" }); // so that no sticky part covers it
});
form.addEventListener("change", ({ target }) => {
  const minor = target.classList.contains("own-amount") ? minorUnits(target.value) : null;
  if (minor !== null) target.value = plainNumber.format(minor / 10 ** digits);
});

// Require the lead's name for a split, because mates must see who asks them to pay.
const nameError = document.getElementById("your-name-error");
form.addEventListener("submit", (event) => {
  const { submitter } = event; // missing in Safari before 15.4, where only the server checks the name
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
  showSplit();
});
addEventListener("pageshow", showSplit); // after Back, the browser restores the typed values
