// Keeps the bar and the amounts true to the number of people; the amounts themselves were worked out by the server.
const people = document.getElementById("people");
const bar = document.querySelector("[data-bar]");
const preview = document.querySelector("[data-preview]");
const buttons = document.querySelectorAll("[data-step]");

function show() {
  const count = Number(people.value);
  preview.hidden = !people.validity.valid || !count;
  if (preview.hidden) return;
  for (const row of document.querySelectorAll("[data-people]")) row.hidden = Number(row.dataset.people) !== count;
  [...bar.children].forEach((part, index) => (part.hidden = index >= count));
  bar.classList.toggle("share-bar-many", count > 8);
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
