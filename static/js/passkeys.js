// Passkeys: a form with data-passkey asks the authenticator, then sends its answer. Without this file, or in a browser
// without passkeys, its button stays hidden and its hint says so.
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

function withBytes(options) {
  const listed = (rows) => rows?.map((row) => ({ ...row, id: toBytes(row.id) }));
  const user = options.user && { ...options.user, id: toBytes(options.user.id) };
  return {
    ...options,
    challenge: toBytes(options.challenge),
    user,
    allowCredentials: listed(options.allowCredentials),
    excludeCredentials: listed(options.excludeCredentials),
  };
}

function written({ id, rawId, type, response }) {
  const parts = ["clientDataJSON", "attestationObject", "authenticatorData", "signature", "userHandle"];
  const sent = parts.filter((part) => response[part]).map((part) => [part, toText(response[part])]);
  return JSON.stringify({ id, rawId: toText(rawId), type, response: Object.fromEntries(sent) });
}

// The options are in the page, or the form's address returns them.
async function optionsOf(form) {
  const kept = document.getElementById(form.dataset.options);
  if (kept) return JSON.parse(kept.textContent);
  const answer = await fetch(form.action, { headers: { Accept: "application/json" } });
  if (answer.redirected) location.reload(); // somebody has logged in meanwhile
  const data = await answer.json();
  if (!answer.ok) throw new Error(data.error, { cause: "service" });
  return data.request_options;
}

async function use(form) {
  const { publicKey } = await optionsOf(form);
  const asked = { publicKey: withBytes(publicKey) };
  const isNew = form.dataset.passkey === "create";
  const credential = await (isNew ? navigator.credentials.create(asked) : navigator.credentials.get(asked));
  form.elements.credential.value = written(credential);
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
      await use(form);
    } catch (error) {
      hint.textContent = error.cause === "service" ? error.message : (WORDS[error.name] ?? FAILED);
    }
  });
}
