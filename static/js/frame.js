// Code of every page of the payer.

// A page that answers a form gets its own address, so that Back and reload do not send the form again.
const own = document.querySelector("meta[name=reload]");
if (own) history.replaceState(null, "", own.content);

// The server writes each time with the letters of its zone, and the style hides them. A payer in another zone sees them.
function nameOtherZones() {
  for (const time of document.querySelectorAll("time[data-zone]")) {
    const ahead = -new Date(time.dateTime).getTimezoneOffset(); // in minutes, at that moment
    time.toggleAttribute("data-elsewhere", ahead !== Number(time.dataset.zone));
  }
}

for (const change of ["htmx:afterSwap", "bill:changed", "stay:changed"]) document.addEventListener(change, nameOtherZones);
nameOtherZones();
