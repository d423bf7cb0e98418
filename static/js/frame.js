// All payers' pages run this script.

// If this page is the answer to a form, replace its address, so that Back and reload do not send the form again.
const pageAddress = document.querySelector("meta[name=reload]");
if (pageAddress) history.replaceState(null, "", pageAddress.content);

// Show the time zone next to each time if the payer's zone is different. Otherwise the style sheet hides it.
function nameOtherZones() {
  for (const time of document.querySelectorAll("time[data-zone]")) {
    const ahead = -new Date(time.dateTime).getTimezoneOffset(); // in minutes, at that moment
    time.toggleAttribute("data-elsewhere", ahead !== Number(time.dataset.zone));
  }
}

for (const change of ["htmx:afterSwap", "bill:changed", "stay:changed"]) document.addEventListener(change, nameOtherZones);
nameOtherZones();
