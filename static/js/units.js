// Steppers for numbers of units. A field's `max` says how many units it can have.
{
  const fields = () => [...document.querySelectorAll("[data-units]")];

  const showEnds = (units) => {
    const { value, max } = units.querySelector("input");
    units.querySelector("[data-less]").disabled = Number(value) <= 0;
    units.querySelector("[data-more]").disabled = Number(value) >= Number(max);
  };

  for (const units of fields()) {
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
  // After the page's own script, which can change each `max`.
  addEventListener("input", () => fields().forEach(showEnds));
  addEventListener("pageshow", () => fields().forEach(showEnds));
}
