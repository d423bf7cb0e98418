// The surface of Stripe.js that a Payment Element needs, strict about every name and value it is given.
// (Reference: Stripe.js, "Elements without an Intent", "createConfirmationToken")
(() => {
  const home = new URL(document.currentScript.src).origin;
  const COLOR = /^(#[0-9a-f]{3}|#[0-9a-f]{6}|rgba?\([\d., ]+\)|hsla?\([\d., %]+\))$/i;
  const LOCALES = ["auto", "de", "en", "en-GB", "es", "fr", "fr-CA", "it", "nl"];
  const VARIABLES = ["colorPrimary", "colorBackground", "colorText", "colorTextSecondary", "colorDanger"];
  const LETTERS = ["fontFamily", "fontSizeBase", "borderRadius", "spacingUnit"];

  function refuse(words) {
    const error = new Error(words);
    error.name = "IntegrationError";
    throw error;
  }

  function known(what, given, names) {
    for (const name of Object.keys(given || {})) if (!names.includes(name)) refuse(`${what} knows no ${name}`);
  }

  function checkAppearance({ variables = {}, ...rest }) {
    known("appearance", rest, ["theme", "rules", "labels"]);
    known("appearance.variables", variables, [...VARIABLES, ...LETTERS]);
    for (const name of VARIABLES)
      if (name in variables && !COLOR.test(variables[name])) refuse(`${name} is no colour: ${variables[name]}`);
    for (const name of LETTERS) if (variables[name] === "") refuse(`${name} is empty`);
  }

  function checkElements(given) {
    const names = ["mode", "amount", "currency", "captureMethod", "allowedPaymentMethodTypes"];
    known("elements()", given, [...names, "paymentMethodTypes", "locale", "appearance", "fonts", "loader"]);
    if (given.mode !== "payment") refuse("mode is payment");
    if (!Number.isInteger(given.amount) || given.amount <= 0) refuse("amount is in the least unit");
    if (!/^[a-z]{3}$/.test(given.currency)) refuse("currency is three small letters");
    if (!["automatic", "manual"].includes(given.captureMethod)) refuse("captureMethod");
    if (!LOCALES.includes(given.locale)) refuse(`${given.locale} is no locale`);
    checkAppearance(given.appearance || {});
  }

  class Element {
    constructor(key, account, given) {
      Object.assign(this, { key, account, given, heard: {}, waiting: new Map(), asked: 0 });
      addEventListener("message", (event) => event.source === this.frame?.contentWindow && this.hear(event));
    }

    on(name, handler) {
      known("element.on", { [name]: 1 }, ["ready", "loaderror", "loaderstart", "change", "focus", "blur", "escape"]);
      this.heard[name] = handler;
      return this;
    }

    mount(place) {
      const parent = typeof place === "string" ? document.querySelector(place) : place;
      if (!parent) refuse("mount() wants a place");
      const about = { key: this.key, account: this.account, locale: this.given.locale };
      const query = new URLSearchParams({ ...about, ...(this.given.appearance || {}).variables });
      this.frame = Object.assign(document.createElement("iframe"), { src: `${home}/_peer/fields?${query}` });
      this.frame.title = "Secure payment input frame";
      this.frame.style.cssText = "border: 0; width: 100%; height: 220px; display: block";
      parent.replaceChildren(this.frame);
    }

    hear({ origin, data }) {
      if (origin !== home) return;
      if (data.height) this.frame.style.height = `${data.height}px`;
      if (data.event) this.heard[data.event]?.({ elementType: "payment" });
      this.waiting.get(data.asked)?.(data.said);
    }

    ask(what) {
      const asked = ++this.asked;
      this.frame.contentWindow.postMessage({ asked, what }, home);
      return new Promise((resolve) => this.waiting.set(asked, resolve));
    }
  }

  class Elements {
    constructor(key, account, given) {
      Object.assign(this, { key, account, given, isSubmitted: false });
    }

    create(kind, options) {
      if (kind !== "payment") refuse(`the peer has no element ${kind}`);
      known("create()", options, ["layout", "wallets", "fields", "terms", "defaultValues", "business"]);
      this.element = new Element(this.key, this.account, this.given);
      return this.element;
    }

    async submit() {
      const said = await this.element.ask("submit");
      this.isSubmitted = !said.error;
      return said;
    }
  }

  window.Stripe = (key, options = {}) => {
    if (!/^pk_(test|live)_\w+$/.test(key)) refuse("a publishable key begins with pk_");
    known("Stripe()", options, ["stripeAccount", "apiVersion", "locale", "developerTools"]);
    return {
      elements(given) {
        checkElements(given);
        return new Elements(key, options.stripeAccount || "", given);
      },
      async createConfirmationToken(given) {
        known("createConfirmationToken()", given, ["elements", "params"]);
        if (!given.elements.isSubmitted) refuse("elements.submit() comes first");
        return given.elements.element.ask("token");
      },
    };
  };
})();
