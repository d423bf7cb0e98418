// Show the cost of the chosen units. This is a preview: the server calculates the amount that is charged.
{
  const form = document.querySelector(".free-items");
  const { dataset: data } = form;
  const digits = Number(data.digits);
  const money = new Intl.NumberFormat(document.documentElement.lang, { style: "currency", currency: data.currency, currencyDisplay: "narrowSymbol", minimumFractionDigits: digits, maximumFractionDigits: digits });
  const formatAmount = (minor) => money.format(minor / 10 ** digits).replace("-", "\u2212");
  const rows = form.querySelector("[data-rows]");
  const model = document.createElement("li");
  model.innerHTML = '<p class="bill-line"><span class="bill-name"><bdi></bdi></span><span class="amount"></span></p>';

  const countChosen = (line) => {
    const field = line.querySelector("input");
    return field.type === "checkbox" ? Number(field.checked) : Math.min(Number(field.max), Math.max(0, Math.trunc(Number(field.value)) || 0));
  };
  const makeRow = (name, minor) => {
    const item = model.cloneNode(true);
    item.querySelector("bdi").textContent = name;
    item.querySelector(".amount").textContent = formatAmount(minor);
    return item;
  };

  function showCost() {
    const lines = [...form.querySelectorAll("[data-line]")].map((line) => ({ name: line.dataset.name, price: Number(line.dataset.price), count: countChosen(line) })).filter(({ count }) => count);
    const goods = lines.reduce((sum, { price, count }) => sum + price * count, 0);
    const amount = costOfUnits(goods, data, Number(data.unit));
    const extras = amount - goods;
    rows.replaceChildren(...lines.map(({ name, price, count }) => makeRow(`${count} \u00d7 ${name}`, price * count)), ...(extras ? [makeRow(data.extras, extras)] : []));
    form.querySelector("[data-yours]").textContent = formatAmount(amount);
    const take = form.querySelector("[data-take]");
    const count = lines.reduce((sum, line) => sum + line.count, 0);
    take.disabled = count === 0;
    take.textContent = (count === 0 ? data.none : count === 1 ? data.one : data.many).replace("{amount}", formatAmount(amount));
  }
  form.addEventListener("input", showCost);
  addEventListener("pageshow", showCost);
}
