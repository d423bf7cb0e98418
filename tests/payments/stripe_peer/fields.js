// A stand-in for Stripe.js with the functions that a Payment Element needs. It refuses unknown names and wrong values.
// (Reference: Stripe.js, "Elements without an Intent", "createConfirmationToken")
(() => {
  const home = new URL(document.currentScript.src).origin;
  const COLOR = /^(#[0-9a-f]{3}|#[0-9a-f]{6}|rgba?\([\d., ]+\)|hsla?\([\d., %]+\))$/i;
  const LOCALES = ["auto", "de", "en", "en-GB", "es", "fr", "fr-CA", "it", "nl"];
  const VARIABLES = ["colorPrimary", "colorBackground", "colorText", "colorTextSecondary", "colorDanger"];
  const LETTERS = ["fontFamily", "fontSizeBase", "borderRadius", "spacingUnit"];

  function refuse(message) {
    const error = new Error(message);
    error.name = "IntegrationError";
    throw error;
  }

  function checkNames(subject, given, names) {
    for (const name of Object.keys(given || {})) if (!names.includes(name)) refuse(`${subject} has no ${name}`);
  }

  function checkAppearance({ variables = {}, ...rest }) {
    checkNames("appearance", rest, ["theme", "rules", "labels"]);
    checkNames("appearance.variables", variables, [...VARIABLES, ...LETTERS]);
    for (const name of VARIABLES)
      if (name in variables && !COLOR.test(variables[name])) refuse(`${name} is not a colour: ${variables[name]}`);
    for (const name of LETTERS) if (variables[name] === "") refuse(`${name} is empty`);
  }

  function checkElements(given) {
    const names = ["mode", "amount", "currency", "captureMethod", "allowedPaymentMethodTypes"];
    checkNames("elements()", given, [...names, "paymentMethodTypes", "locale", "appearance", "fonts", "loader"]);
    if (given.mode !== "payment") refuse("mode must be payment");
    if (!Number.isInteger(given.amount) || given.amount <= 0) refuse("amount must be a whole number of minor units");
    if (!/^[a-z]{3}$/.test(given.currency)) refuse("currency must be three lower-case letters");
    if (!["automatic", "manual"].includes(given.captureMethod)) refuse("captureMethod must be automatic or manual");
    if (!LOCALES.includes(given.locale)) refuse(`${given.locale} is not a locale`);
    checkAppearance(given.appearance || {});
  }

  class Element {
    constructor(key, account, given) {
      Object.assign(this, { key, account, given, handlers: {}, waiting: new Map(), lastId: 0 });
      addEventListener("message", (event) => event.source === this.frame?.contentWindow && this.receive(event));
    }

    on(name, handler) {
      checkNames("element.on", { [name]: 1 }, ["ready", "loaderror", "loaderstart", "change", "focus", "blur", "escape"]);
      this.handlers[name] = handler;
      return this;
    }

    mount(place) {
      const parent = typeof place === "string" ? document.querySelector(place) : place;
      if (!parent) refuse("mount() needs an element");
      const about = { key: this.key, account: this.account, locale: this.given.locale };
      const query = new URLSearchParams({ ...about, ...(this.given.appearance || {}).variables });
      this.frame = Object.assign(document.createElement("iframe"), { src: `${home}/_peer/fields?${query}` });
      this.frame.title = "Secure payment input frame";
      this.frame.style.cssText = "border: 0; width: 100%; height: 220px; display: block";
      parent.replaceChildren(this.frame);
    }

    receive({ origin, data }) {
      if (origin !== home) return;
      if (data.height) this.frame.style.height = `${data.height}px`;
      if (data.event) this.handlers[data.event]?.({ elementType: "payment" });
      this.waiting.get(data.id)?.(data.result);
    }

    call(name) {
      const id = ++this.lastId;
      this.frame.contentWindow.postMessage({ id, name }, home);
      return new Promise((resolve) => this.waiting.set(id, resolve));
    }
  }

  class Elements {
    constructor(key, account, given) {
      Object.assign(this, { key, account, given, isSubmitted: false });
    }

    create(kind, options) {
      if (kind !== "payment") refuse(`this stand-in has no element ${kind}`);
      checkNames("create()", options, ["layout", "wallets", "fields", "terms", "defaultValues", "business"]);
      this.element = new Element(this.key, this.account, this.given);
      return this.element;
    }

    async submit() {
      const result = await this.element.call("submit");
      this.isSubmitted = !result.error;
      return result;
    }
  }

  window.Stripe = (key, options = {}) => {
    if (!/^pk_(test|live)_\w+$/.test(key)) refuse("a publishable key must begin with pk_");
    checkNames("Stripe()", options, ["stripeAccount", "apiVersion", "locale", "developerTools"]);
    return {
      elements(given) {
        checkElements(given);
        return new Elements(key, options.stripeAccount || "", given);
      },
      async createConfirmationToken(given) {
        checkNames("createConfirmationToken()", given, ["elements", "params"]);
        if (!given.elements.isSubmitted) refuse("call elements.submit() first");
        return given.elements.element.call("token");
      },
    };
  };
})();
