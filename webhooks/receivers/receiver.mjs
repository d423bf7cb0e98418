// Verifies each webhook, captures the held checkout, and answers: node receiver.mjs
// It needs CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID, CHECKOUT_CLIENT_SECRET
// and SIGNING_SECRETS (two secrets while you rotate). Set PORT for another port than 3000.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

for (const name of ['CHECKOUT_BASE_URL', 'CHECKOUT_CLIENT_ID', 'CHECKOUT_CLIENT_SECRET', 'SIGNING_SECRETS']) {
  if (process.env[name]?.trim()) continue
  console.error(`Set ${name} (see Quick start and Receivers in the documentation).`)
  process.exit(1)
}
const { CHECKOUT_BASE_URL: base, CHECKOUT_CLIENT_ID: client_id, CHECKOUT_CLIENT_SECRET: client_secret } = process.env
const secrets = process.env.SIGNING_SECRETS.split(/\s+/).filter(Boolean) // without empty ones: anyone can sign with one
const port = Number(process.env.PORT || 3000)
const orders = '/api/merchant/v1/checkouts'
const ago = (seconds) => new Date(Date.now() - seconds * 1000).toISOString()
const started = ago(120) // a hold lasts two minutes, so the first catch-up misses none
for (const table of ['seen', 'paid']) mkdirSync(table, { recursive: true }) // in your service, use tables with a unique column
let token = { until: 0 }

class Refused extends Error {} // the answer is 400, and the message is one of four reasons

const same = (one, other) => one.length === other.length && timingSafeEqual(one, other)

function verify(header, body) {
  const entries = header.split(',').map((entry) => entry.match(/^(.*?)=(.*)$/)?.slice(1))
  const all = (scheme) => entries.filter((entry) => entry?.[0] === scheme).map((entry) => entry[1])
  const [times, given] = [all('t'), all('v1')]
  const isWhole = entries.every(Boolean) && times.length === 1 && given.length > 0
  if (!isWhole || !/^[0-9]{1,12}$/.test(times[0])) throw new Refused('malformed_header')
  const wanted = secrets.map((key) => createHmac('sha256', key).update(`${times[0]}.`).update(body).digest('hex'))
  const matches = given.flatMap((v1) => wanted.map((hex) => same(Buffer.from(v1), Buffer.from(hex))))
  if (!matches.includes(true)) throw new Refused('no_matching_signature')
  if (Math.abs(Math.floor(Date.now() / 1000) - Number(times[0])) > 300) throw new Refused('timestamp_out_of_tolerance')
  try {
    const event = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body))
    if (Object.prototype.toString.call(event) === '[object Object]') return event
  } catch {}
  throw new Refused('invalid_json')
}

async function call(method, path, body, seconds, headers = {}) {
  const answer = await fetch(base + path, {
    method,
    body: body && JSON.stringify(body),
    headers: { 'Content-Type': 'application/json', ...headers },
    signal: AbortSignal.timeout(Math.ceil(seconds * 1000)),
  })
  const wait = Number(answer.headers.get('Retry-After')) || 1
  return { ...(await answer.json()), status: answer.status, wait }
}

async function authorized(method, path, body, seconds) {
  if (Date.now() > token.until) { // reuse a token until shortly before it expires
    token = await call('POST', '/oauth/token', { grant_type: 'client_credentials', client_id, client_secret }, 3)
    token.until = token.status === 200 ? Date.now() + (token.expires_in - 60) * 1000 : 0
  }
  const answer = await call(method, path, body, seconds, { Authorization: `Bearer ${token.access_token}` })
  if (answer.status === 401) token.until = 0
  if (answer.status !== 200) console.log(method, path, 'answered', answer.status, answer.error?.code)
  return answer
}

// Return true (captured), false (the hold is over) or undefined (not known yet), and the seconds to wait.
async function tryCapture(checkout, seconds) {
  try {
    const { status, error, wait } = await authorized('POST', `${orders}/${checkout}/capture`, {}, seconds)
    return [status === 200 ? true : error?.code === 'not_capturable' ? false : undefined, wait]
  } catch (silence) {
    console.log(String(silence))
    return [undefined, 1]
  }
}

// Return whether the money has moved; throw if it is not known. Takes at most 12 s: a webhook must be answered within 15 s.
async function capture(checkout) {
  const end = performance.now() + 12_000
  for (;;) {
    const [moved, wait] = await tryCapture(checkout, Math.min(8, (end - performance.now()) / 1000))
    if (moved !== undefined) return moved
    if (performance.now() + (wait + 1) * 1000 > end) throw Error(`${checkout} is not captured yet`)
    await sleep(wait * 1000) // a second try is safe: the service captures only once
  }
}

function fulfil(checkout) { // mark the order as paid; a second call changes nothing; do slow work elsewhere
  if (!existsSync(`paid/${checkout}`)) writeFileSync(`paid/${checkout}`, '')
}

// Capture held checkouts; fulfil those captured since the cursor. Store the cursor with your orders.
async function catchUp() {
  const held = []
  for (let more = ''; more !== null; ) { // newest first, so the hold that ends soonest is on the last page
    const { data } = await authorized('GET', `${orders}?status=authorized&limit=200${more}`, undefined, 8)
    held.push(...(data?.checkouts ?? []))
    more = data?.next_cursor ? `&cursor=${data.next_cursor}` : null
  }
  held.sort((one, other) => (one.capture_before < other.capture_before ? -1 : 1))
  for (const { checkout_uuid, authorized_at, pending_operation } of held) {
    if (pending_operation || authorized_at > ago(10)) continue // its webhook captures it
    if ((await tryCapture(checkout_uuid, 8))[0]) fulfil(checkout_uuid)
  }
  for (let isFull = true; isFull; ) {
    const from = existsSync('cursor') ? `cursor=${readFileSync('cursor')}` : `updated_after=${started}`
    const { data } = await authorized('GET', `${orders}?sort=updated_at&limit=200&${from}`, undefined, 8)
    if (!data) return
    for (const { checkout_uuid, status } of data.checkouts) if (status === 'captured') fulfil(checkout_uuid)
    writeFileSync('cursor', data.next_cursor)
    isFull = data.checkouts.length === 200
  }
}

async function receive(request) {
  const chunks = []
  let size = 0
  for await (const chunk of request) if ((size += chunk.length) <= 1 << 20) chunks.push(chunk)
  const { id, type, data } = verify(request.headers['x-service-signature'] ?? '', Buffer.concat(chunks))
  if (existsSync(`seen/${id}`)) return // two deliveries can pass this check at the same time, which does no harm
  if (type === 'checkout.authorized' && (await capture(data.checkout_uuid))) fulfil(data.checkout_uuid)
  writeFileSync(`seen/${id}`, '')
}

createServer(async (request, response) => {
  let [status, words] = [200, 'ok']
  try {
    await receive(request)
  } catch (failure) {
    const isRefused = failure instanceof Refused // the sender is unknown: do not store or log the body
    if (!isRefused) console.log(String(failure))
    ;[status, words] = isRefused ? [400, failure.message] : [500, 'send it again'] // a 4xx would end the retries
  }
  console.log('a delivery is answered', status, words)
  response.writeHead(status).end(words)
}).listen(port, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${port}`))

for (;;) {
  await sleep(5000)
  await catchUp().catch((failure) => console.log(String(failure)))
}
