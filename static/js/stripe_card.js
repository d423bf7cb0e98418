// Shows Stripe's own card fields, and leads back with the token of what was entered: it never passes through us.
const form = document.getElementById("card-form");
const pay = document.getElementById("pay");
const place = document.getElementById("card-element");
const error = document.getElementById("card-error");
const payLabel = pay.innerHTML;
const { key, account, amount, currency, methods, returnUrl } = form.dataset;

function setBusy(isBusy) {
  pay.toggleAttribute("aria-disabled", isBusy);
  if (isBusy) pay.textContent = pay.dataset.busy;
  else pay.innerHTML = payLabel;
}

function say(words) {
  error.textContent = words;
  place.removeAttribute("aria-busy");
}

// Stripe's fields in the colours and letters of this page, light or dark.
function appearance() {
  const style = getComputedStyle(document.documentElement);
  const token = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    variables: {
      colorPrimary: token("pen"),
      colorBackground: token("field"),
      colorText: token("ink"),
      colorTextSecondary: token("ink-2"),
      colorDanger: token("stop"),
      fontFamily: token("sans"),
      borderRadius: token("radius"),
    },
  };
}

function tokenOf(result) {
  if (result.error) throw result.error;
  return result.confirmationToken.id;
}

async function start() {
  const stripe = Stripe(key, account ? { stripeAccount: account } : {});
  const elements = stripe.elements({
    mode: "payment",
    amount: Number(amount),
    currency,
    captureMethod: "manual",
    allowedPaymentMethodTypes: methods.split(" "),
    locale: Intl.getCanonicalLocales(document.documentElement.lang)[0], // en-GB: Stripe knows no en-gb
    appearance: appearance(),
  });
  const fields = elements.create("payment");
  fields.on("ready", () => {
    place.removeAttribute("aria-busy");
    pay.disabled = false;
  });
  fields.on("loaderror", () => say(error.dataset.broken));
  fields.mount(place);

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (pay.hasAttribute("aria-disabled")) return;
    setBusy(true);
    say("");
    try {
      const checked = await elements.submit();
      if (checked.error) throw checked.error;
      const token = tokenOf(await stripe.createConfirmationToken({ elements }));
      const url = new URL(returnUrl);
      url.searchParams.set("card_token", token);
      location.assign(url);
    } catch (refusal) {
      say(refusal.message || error.dataset.broken);
      setBusy(false);
    }
  });
}

if (typeof Stripe === "undefined") {
  say(error.dataset.broken);
} else {
  start().catch((reason) => {
    console.error(reason);
    say(error.dataset.broken);
  });
}
// A page from before the payment is not shown again as if nothing were paid.
addEventListener("pageshow", ({ persisted }) => (persisted ? location.reload() : setBusy(false)));
