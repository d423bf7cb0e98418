// Return the cost of units with their part of the shared lines, rounded down as in checkout/split/item_amounts.py. The
// calculation uses BigInt, because the product of two sums can be above 2^53, where a Number is not exact.
function costOfUnits(sum, { goods, shared }, step) {
  const product = BigInt(shared) * BigInt(sum);
  const rest = product % BigInt(goods);
  const part = Number(product / BigInt(goods)) - (rest < 0 ? 1 : 0);
  return Math.floor((sum + part) / step) * step;
}

// Add buttons to the fields for numbers of units. The value of a field can be at most `max`.
{
  const findSteppers = () => [...document.querySelectorAll("[data-units]")];

  const updateButtons = (units) => {
    const { value, max } = units.querySelector("input");
    units.querySelector("[data-less]").disabled = Number(value) <= 0;
    units.querySelector("[data-more]").disabled = Number(value) >= Number(max);
  };

  for (const units of findSteppers()) {
    const field = units.querySelector("input");
    for (const [name, step] of [["less", -1], ["more", 1]]) {
      const button = units.querySelector(`[data-${name}]`);
      button.hidden = false;
      button.addEventListener("click", () => {
        field.value = Math.min(Number(field.max), Math.max(0, (Number(field.value) || 0) + step));
        field.dispatchEvent(new Event("input", { bubbles: true }));
      });
    }
  }
  // The page's other script can change each `max`, so this script listens on the window, which gets the event last.
  addEventListener("input", () => findSteppers().forEach(updateButtons));
  addEventListener("pageshow", () => findSteppers().forEach(updateButtons));
}
