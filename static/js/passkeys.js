// Passkeys: before a form with data-passkey is sent, ask the authenticator for a credential and add it to the form.
// Without JavaScript or passkeys, the button stays hidden, and the hint says why.
const WORDS = {
  NotAllowedError: "No passkey was used. Try again, or choose another way.",
  InvalidStateError: "This device already has one of your passkeys.",
  SecurityError: "Passkeys do not work at this address.",
};
const FAILED = "This did not work. Try again, or choose another way.";

function toBytes(text) {
  const letters = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
  return Uint8Array.from(letters, (letter) => letter.charCodeAt(0));
}

function toText(buffer) {
  const letters = Array.from(new Uint8Array(buffer), (byte) => String.fromCharCode(byte)).join("");
  return btoa(letters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

function decodeOptions(options) {
  const decodeIds = (rows) => rows?.map((row) => ({ ...row, id: toBytes(row.id) }));
  const user = options.user && { ...options.user, id: toBytes(options.user.id) };
  return {
    ...options,
    challenge: toBytes(options.challenge),
    user,
    allowCredentials: decodeIds(options.allowCredentials),
    excludeCredentials: decodeIds(options.excludeCredentials),
  };
}

function encodeCredential({ id, rawId, type, response }) {
  const parts = ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"];
  const encoded = parts.filter((part) => response[part]).map((part) => [part, toText(response[part])]);
  return JSON.stringify({ id, rawId: toText(rawId), type, response: Object.fromEntries(encoded) });
}

// Return the options for the authenticator. They are on the page, or at the form's address.
async function loadOptions(form) {
  const inPage = document.getElementById(form.dataset.options);
  if (inPage) return JSON.parse(inPage.textContent);
  const answer = await fetch(form.action, { headers: { Accept: "application/json" } });
  if (answer.redirected) location.reload(); // the person has logged in meanwhile, for example in a different tab
  const data = await answer.json();
  if (!answer.ok) throw new Error(data.error, { cause: "service" });
  return data.request_options;
}

async function submitCredential(form) {
  const { publicKey } = await loadOptions(form);
  const request = { publicKey: decodeOptions(publicKey) };
  const isNew = form.dataset.passkey === "create";
  const credential = await (isNew ? navigator.credentials.create(request) : navigator.credentials.get(request));
  form.elements.credential.value = encodeCredential(credential);
  form.submit();
}

for (const form of document.querySelectorAll("[data-passkey]")) {
  const hint = form.querySelector("[data-passkey-hint]");
  if (!window.PublicKeyCredential) {
    hint.textContent = "This browser does not support passkeys.";
    continue;
  }
  hint.textContent = "";
  for (const part of form.querySelectorAll("[data-passkey-part]")) part.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    hint.textContent = "";
    try {
      await submitCredential(form);
    } catch (error) {
      hint.textContent = error.cause === "service" ? error.message : (WORDS[error.name] ?? FAILED);
    }
  });
}
