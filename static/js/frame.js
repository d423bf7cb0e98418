// Every page of the payer runs this script.

// If this page is the answer to a form, replace its address, so that Back and reload do not send the form again.
const pageAddress = document.querySelector("meta[name=reload]");
if (pageAddress) history.replaceState(null, "", pageAddress.content);

// Show the time zone next to each time if the payer is in another zone. The style sheet hides it otherwise.
function nameOtherZones() {
  for (const time of document.querySelectorAll("time[data-zone]")) {
    const ahead = -new Date(time.dateTime).getTimezoneOffset(); // in minutes, at that moment
    time.toggleAttribute("data-elsewhere", ahead !== Number(time.dataset.zone));
  }
}

for (const change of ["htmx:afterSwap", "bill:changed", "stay:changed"]) document.addEventListener(change, nameOtherZones);
nameOtherZones();
