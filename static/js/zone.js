// The server writes each time with its zone's letters, which style hides: they are for who lives in another zone.
function nameOtherZones() {
  for (const time of document.querySelectorAll("time[data-zone]")) {
    const ahead = -new Date(time.dateTime).getTimezoneOffset(); // in minutes, at that moment
    time.toggleAttribute("data-elsewhere", ahead !== Number(time.dataset.zone));
  }
}

for (const change of ["htmx:afterSwap", "bill:changed", "stay:changed"]) document.addEventListener(change, nameOtherZones);
nameOtherZones();
