// A token, an order, its payment, the capture, the refund: node quickstart.ts (22.18 or newer), with these variables set.
// CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID, CHECKOUT_CLIENT_SECRET
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'

type Checkout = {
  checkout_uuid: string
  checkout_url: string
  status: 'created' | 'expired' | 'authorized' | 'voided' | 'captured' | 'refunding' | 'refunded'
  capture_before?: string
  refunded_amount?: number
}

const missing = ['CHECKOUT_BASE_URL', 'CHECKOUT_CLIENT_ID', 'CHECKOUT_CLIENT_SECRET'].find((name) => !process.env[name])
if (missing) console.error(`Set ${missing} (see Quick start in the documentation).`), process.exit(1)
const { CHECKOUT_BASE_URL: base, CHECKOUT_CLIENT_ID: client_id, CHECKOUT_CLIENT_SECRET: client_secret } = process.env
const headers: Record<string, string> = { 'Content-Type': 'application/json' }

// The answer's JSON; what is refused ends the program, with the reason.
async function call<Answer>(method: string, path: string, body?: object, more = {}): Promise<Answer> {
  const answer = await fetch(base + path, { method, body: JSON.stringify(body), headers: { ...headers, ...more } })
  const text = await answer.text()
  if (!answer.ok) throw Error(`${answer.status} ${text}`)
  return JSON.parse(text || '{}') as Answer
}
const checkouts = async (method: string, path: string, body?: object, more = {}) =>
  (await call<{ data: Checkout }>(method, path, body, more)).data

// A token is good for an hour: keep it.
const grant = { grant_type: 'client_credentials', client_id, client_secret }
const { access_token } = await call<{ access_token: string }>('POST', '/oauth/token', grant)
headers.Authorization = `Bearer ${access_token}`

// An order. Its key makes one order of a call that is repeated.
const orderId = `A-${randomUUID()}`
const order = {
  merchant_order_id: orderId,
  total_amount: 2250,
  currency: 'GBP',
  items: [{ item_ref: 'standing', name: 'Standing ticket', quantity: 1, unit_price: 2250, currency: 'GBP' }],
  return_url: 'https://shop.example/thanks',
  cancel_url: 'https://shop.example/basket',
}
const created = await checkouts('POST', '/api/merchant/v1/checkouts', order, { 'Idempotency-Key': orderId })
const checkout = `/api/merchant/v1/checkouts/${created.checkout_uuid}`
console.log(created.status, created.checkout_url) // send your customer there

// The customer pays. In the sandbox this call does it; or open the address and pay by 4242 4242 4242 4242.
const paid = await checkouts('POST', `/api/sandbox/v1/checkouts/${created.checkout_uuid}/pay`, {})
console.log(paid.status, 'until', paid.capture_before) // the money is held, for two minutes

// Capture: after this answer the money has moved, and you fulfil the order.
console.log((await checkouts('POST', `${checkout}/capture`, {})).status)

// Refund: accepted at once, settled a moment later.
await call('POST', `${checkout}/refund`, { merchant_refund_ref: `R-${orderId}` })
let read: Checkout
while ((read = await checkouts('GET', checkout)).status === 'refunding') await sleep(1000)
console.log(read.status, read.refunded_amount)
