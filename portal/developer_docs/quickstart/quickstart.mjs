// Makes, pays, captures and refunds an order: node quickstart.mjs
// It needs CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID and CHECKOUT_CLIENT_SECRET.
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

const needed = ['CHECKOUT_BASE_URL', 'CHECKOUT_CLIENT_ID', 'CHECKOUT_CLIENT_SECRET']
for (const name of needed) {
  if (process.env[name]) continue
  console.error(`Set ${name} (see Quick start in the documentation).`)
  process.exit(1)
}
const [base, client_id, client_secret] = needed.map((name) => process.env[name])
const headers = { 'Content-Type': 'application/json' }

// Return the answer's JSON. If the call is refused, end with the reason.
async function call(method, path, body, more = {}) {
  const answer = await fetch(base + path, {
    method,
    body: body && JSON.stringify(body),
    headers: { ...headers, ...more },
  })
  const text = await answer.text()
  if (!answer.ok) throw Error(`${answer.status} ${text}`)
  return JSON.parse(text || '{}')
}

// A token is valid for an hour: use it for all calls.
const grant = { grant_type: 'client_credentials', client_id, client_secret }
const { access_token } = await call('POST', '/oauth/token', grant)
headers.Authorization = `Bearer ${access_token}`

// An order. The key prevents a second order if you repeat the call.
const orderId = `A-${randomUUID()}`
const price = { quantity: 1, unit_price: 2250, currency: 'GBP' }
const order = {
  merchant_order_id: orderId,
  total_amount: 2250,
  currency: 'GBP',
  items: [{ item_ref: 'standing', name: 'Standing ticket', ...price }],
  return_url: 'https://shop.example/thanks',
  cancel_url: 'https://shop.example/basket',
}
const key = { 'Idempotency-Key': orderId }
const created = await call('POST', '/api/merchant/v1/checkouts', order, key)
const { checkout_uuid, checkout_url, status } = created.data
const checkout = `/api/merchant/v1/checkouts/${checkout_uuid}`
console.log(status, checkout_url) // send your customer there

// The customer pays. In the sandbox, this call pays for them.
// Or open the address and pay with 4242 4242 4242 4242.
const paid = await call('POST', `/api/sandbox/v1/checkouts/${checkout_uuid}/pay`, {})
console.log(paid.data.status, 'until', paid.data.capture_before) // capture by then

// Capture: after this answer the money has moved. Now fulfil the order.
console.log((await call('POST', `${checkout}/capture`, {})).data.status)

// Refund: accepted at once, settled when the provider confirms it.
await call('POST', `${checkout}/refund`, { merchant_refund_ref: `R-${orderId}` })
let read = await call('GET', checkout)
while (read.data.status === 'refunding') {
  await sleep(1000)
  read = await call('GET', checkout)
}
console.log(read.data.status, read.data.refunded_amount)
