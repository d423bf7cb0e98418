// Show Stripe's card fields, and return to the service with the card token. The card data goes only to Stripe.
const form = document.getElementById("card-form");
const pay = document.getElementById("pay");
const fieldsElement = document.getElementById("card-element");
const error = document.getElementById("card-error");
const payLabel = pay.innerHTML;
const { key, account, amount, currency, methods, returnUrl } = form.dataset;

function setBusy(isBusy) {
  pay.toggleAttribute("aria-disabled", isBusy);
  if (isBusy) pay.textContent = pay.dataset.busy;
  else pay.innerHTML = payLabel;
}

function showError(words) {
  error.textContent = words;
  fieldsElement.removeAttribute("aria-busy");
}

// Return the style of Stripe's fields: the colours and fonts of this page, light or dark.
function readAppearance() {
  const style = getComputedStyle(document.documentElement);
  const readVariable = (name) => style.getPropertyValue(`--${name}`).trim();
  return {
    variables: {
      colorPrimary: readVariable("pen"),
      colorBackground: readVariable("field"),
      colorText: readVariable("ink"),
      colorTextSecondary: readVariable("ink-2"),
      colorDanger: readVariable("stop"),
      fontFamily: readVariable("sans"),
      borderRadius: readVariable("radius"),
    },
  };
}

function readToken(result) {
  if (result.error) throw result.error;
  return result.confirmationToken.id;
}

async function mountFields() {
  const stripe = Stripe(key, account ? { stripeAccount: account } : {});
  const elements = stripe.elements({
    mode: "payment",
    amount: Number(amount),
    currency,
    captureMethod: "manual",
    allowedPaymentMethodTypes: methods.split(" "),
    locale: Intl.getCanonicalLocales(document.documentElement.lang)[0], // Stripe accepts en-GB, but not en-gb
    appearance: readAppearance(),
  });
  const fields = elements.create("payment");
  fields.on("ready", () => {
    fieldsElement.removeAttribute("aria-busy");
    pay.disabled = false;
  });
  fields.on("loaderror", () => showError(error.dataset.broken));
  fields.mount(fieldsElement);

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (pay.hasAttribute("aria-disabled")) return;
    setBusy(true);
    showError("");
    try {
      const checked = await elements.submit();
      if (checked.error) throw checked.error;
      const token = readToken(await stripe.createConfirmationToken({ elements }));
      const url = new URL(returnUrl);
      url.searchParams.set("card_token", token);
      location.assign(url);
    } catch (refusal) {
      showError(refusal.message || error.dataset.broken);
      setBusy(false);
    }
  });
}

if (typeof Stripe === "undefined") {
  showError(error.dataset.broken);
} else {
  mountFields().catch((reason) => {
    console.error(reason);
    showError(error.dataset.broken);
  });
}
// If the payer comes back with the Back button, reload the page, because the order might be paid already.
addEventListener("pageshow", ({ persisted }) => (persisted ? location.reload() : setBusy(false)));
