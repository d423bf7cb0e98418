// Shows what the chosen units cost. The server calculates it again, and decides.
{
  const form = document.querySelector(".free-items");
  const { dataset: words } = form;
  const digits = Number(words.digits);
  const money = new Intl.NumberFormat(document.documentElement.lang, { style: "currency", currency: words.currency, currencyDisplay: "narrowSymbol", minimumFractionDigits: digits, maximumFractionDigits: digits });
  const shown = (minor) => money.format(minor / 10 ** digits).replace("-", "\u2212");
  const rows = form.querySelector("[data-rows]");
  const model = document.createElement("li");
  model.innerHTML = '<p class="bill-line"><span class="bill-name"><bdi></bdi></span><span class="amount"></span></p>';

  const chosen = (line) => {
    const field = line.querySelector("input");
    return field.type === "checkbox" ? Number(field.checked) : Math.min(Number(field.max), Math.max(0, Math.trunc(Number(field.value)) || 0));
  };
  const row = (name, minor) => {
    const made = model.cloneNode(true);
    made.querySelector("bdi").textContent = name;
    made.querySelector(".amount").textContent = shown(minor);
    return made;
  };

  function show() {
    const lines = [...form.querySelectorAll("[data-line]")].map((line) => ({ name: line.dataset.name, price: Number(line.dataset.price), count: chosen(line) })).filter(({ count }) => count);
    const goods = lines.reduce((sum, { price, count }) => sum + price * count, 0);
    const unit = Number(words.unit);
    const amount = Math.floor((goods + Math.floor((Number(words.shared) * goods) / Number(words.goods))) / unit) * unit;
    const extras = amount - goods;
    rows.replaceChildren(...lines.map(({ name, price, count }) => row(`${count} \u00d7 ${name}`, price * count)), ...(extras ? [row(words.extras, extras)] : []));
    form.querySelector("[data-yours]").textContent = shown(amount);
    const take = form.querySelector("[data-take]");
    const count = lines.reduce((sum, line) => sum + line.count, 0);
    take.disabled = count === 0;
    take.textContent = (count === 0 ? words.none : count === 1 ? words.one : words.many).replace("{amount}", shown(amount));
  }
  form.addEventListener("input", show);
  addEventListener("pageshow", show);
}
