// The server writes each time with its zone's letters; where the payer's own clock stands alike they say nothing.
function dropOwnZone() {
  for (const time of document.querySelectorAll("time[data-zone]")) {
    const ahead = -new Date(time.dateTime).getTimezoneOffset(); // in minutes, at that moment
    if (ahead === Number(time.dataset.zone)) time.querySelector("span")?.remove();
  }
}

for (const change of ["htmx:afterSwap", "bill:changed", "stay:changed"]) document.addEventListener(change, dropOwnZone);
dropOwnZone();
