// Verifies each webhook, captures the held checkout, and answers: node receiver.ts
// It needs CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID, CHECKOUT_CLIENT_SECRET
// and SIGNING_SECRETS (two secrets while you rotate). Set PORT for another port than 3000.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

type Event = { id: string; type: string; data?: { checkout_uuid?: string } }
type Checkout = {
  checkout_uuid: string
  status: string
  authorized_at?: string
  capture_before?: string
  pending_operation?: string
}
type Answer = {
  status: number
  wait: number
  error?: { code: string }
  data?: { checkouts: Checkout[]; next_cursor: string }
  access_token?: string
  expires_in?: number
}

for (const name of ['CHECKOUT_BASE_URL', 'CHECKOUT_CLIENT_ID', 'CHECKOUT_CLIENT_SECRET', 'SIGNING_SECRETS']) {
  if (process.env[name]?.trim()) continue
  console.error(`Set ${name} (see Quick start and Receivers in the documentation).`)
  process.exit(1)
}
const { CHECKOUT_BASE_URL: base, CHECKOUT_CLIENT_ID: client_id, CHECKOUT_CLIENT_SECRET: client_secret } = process.env
const secrets = (process.env.SIGNING_SECRETS ?? '').split(/\s+/).filter(Boolean) // without empty ones: anyone can sign with one
const port = Number(process.env.PORT || 3000)
const orders = '/api/merchant/v1/checkouts'
const ago = (seconds: number) => new Date(Date.now() - seconds * 1000).toISOString()
const started = ago(120) // a hold lasts two minutes, so the first catch-up misses none
for (const table of ['seen', 'paid']) mkdirSync(table, { recursive: true }) // in your service, use tables with a unique column
let token = { value: '', until: 0 }

class Refused extends Error {} // the answer is 400, and the message is one of four reasons

const same = (one: Buffer, other: Buffer) => one.length === other.length && timingSafeEqual(one, other)

function verify(header: string, body: Buffer): Event {
  const entries = header.split(',').map((entry) => entry.match(/^(.*?)=(.*)$/)?.slice(1))
  const all = (scheme: string) => entries.filter((entry) => entry?.[0] === scheme).map((entry) => entry?.[1] ?? '')
  const [times, given] = [all('t'), all('v1')]
  const isWhole = entries.every(Boolean) && times.length === 1 && given.length > 0
  const time = times[0] ?? ''
  if (!isWhole || !/^[0-9]{1,12}$/.test(time)) throw new Refused('malformed_header')
  const wanted = secrets.map((key) => createHmac('sha256', key).update(`${time}.`).update(body).digest('hex'))
  const matches = given.flatMap((v1) => wanted.map((hex) => same(Buffer.from(v1), Buffer.from(hex))))
  if (!matches.includes(true)) throw new Refused('no_matching_signature')
  if (Math.abs(Math.floor(Date.now() / 1000) - Number(time)) > 300) throw new Refused('timestamp_out_of_tolerance')
  try {
    const event: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(body))
    if (Object.prototype.toString.call(event) === '[object Object]') return event as Event
  } catch {}
  throw new Refused('invalid_json')
}

async function call(method: string, path: string, body: object | undefined, seconds: number, headers = {}): Promise<Answer> {
  const answer = await fetch(base + path, {
    method,
    body: JSON.stringify(body),
    headers: { 'Content-Type': 'application/json', ...headers },
    signal: AbortSignal.timeout(Math.ceil(seconds * 1000)),
  })
  const wait = Number(answer.headers.get('Retry-After')) || 1
  return { ...((await answer.json()) as object), status: answer.status, wait }
}

async function authorized(method: string, path: string, body: object | undefined, seconds: number): Promise<Answer> {
  if (Date.now() > token.until) { // reuse a token until shortly before it expires
    const grant = { grant_type: 'client_credentials', client_id, client_secret }
    const { access_token = '', expires_in = 0 } = await call('POST', '/oauth/token', grant, 3)
    token = { value: access_token, until: Date.now() + (expires_in - 60) * 1000 }
  }
  const answer = await call(method, path, body, seconds, { Authorization: `Bearer ${token.value}` })
  if (answer.status === 401) token.until = 0
  if (answer.status !== 200) console.log(method, path, 'answered', answer.status, answer.error?.code)
  return answer
}

// Return true (captured), false (the hold is over) or undefined (not known yet), and the seconds to wait.
async function tryCapture(checkout: string, seconds: number): Promise<[boolean | undefined, number]> {
  try {
    const { status, error, wait } = await authorized('POST', `${orders}/${checkout}/capture`, {}, seconds)
    return [status === 200 ? true : error?.code === 'not_capturable' ? false : undefined, wait]
  } catch (silence) {
    console.log(String(silence))
    return [undefined, 1]
  }
}

// Return whether the money has moved; throw if it is not known. Takes at most 12 s: a webhook must be answered within 15 s.
async function capture(checkout: string): Promise<boolean> {
  const end = performance.now() + 12_000
  for (;;) {
    const [moved, wait] = await tryCapture(checkout, Math.min(8, (end - performance.now()) / 1000))
    if (moved !== undefined) return moved
    if (performance.now() + (wait + 1) * 1000 > end) throw Error(`${checkout} is not captured yet`)
    await sleep(wait * 1000) // a second try is safe: the service captures only once
  }
}

function fulfil(checkout: string) { // mark the order as paid; a second call changes nothing; do slow work elsewhere
  if (!existsSync(`paid/${checkout}`)) writeFileSync(`paid/${checkout}`, '')
}

// Capture held checkouts; fulfil those captured since the cursor. Store the cursor with your orders.
async function catchUp(): Promise<void> {
  const held: Checkout[] = []
  for (let more: string | null = ''; more !== null; ) { // newest first, so the hold that ends soonest is on the last page
    const { data }: Answer = await authorized('GET', `${orders}?status=authorized&limit=200${more}`, undefined, 8)
    held.push(...(data?.checkouts ?? []))
    more = data?.next_cursor ? `&cursor=${data.next_cursor}` : null
  }
  held.sort((one, other) => ((one.capture_before ?? '') < (other.capture_before ?? '') ? -1 : 1))
  for (const { checkout_uuid, authorized_at, pending_operation } of held) {
    if (pending_operation || (authorized_at ?? '') > ago(10)) continue // its webhook captures it
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

async function receive(request: IncomingMessage): Promise<void> {
  const chunks: Buffer[] = []
  let size = 0
  for await (const chunk of request) if ((size += chunk.length) <= 1 << 20) chunks.push(chunk)
  const { id, type, data } = verify(String(request.headers['x-service-signature'] ?? ''), Buffer.concat(chunks))
  if (existsSync(`seen/${id}`)) return // two deliveries can pass this check at the same time, which does no harm
  const checkout = data?.checkout_uuid ?? ''
  if (type === 'checkout.authorized' && (await capture(checkout))) fulfil(checkout)
  writeFileSync(`seen/${id}`, '')
}

createServer(async (request, response) => {
  let [status, words] = [200, 'ok']
  try {
    await receive(request)
  } catch (failure) {
    const reason = failure instanceof Refused ? failure.message : '' // the sender is unknown: do not store or log the body
    if (!reason) console.log(String(failure))
    ;[status, words] = reason ? [400, reason] : [500, 'send it again'] // a 4xx would end the retries
  }
  console.log('a delivery is answered', status, words)
  response.writeHead(status).end(words)
}).listen(port, '127.0.0.1', () => console.log(`listening on http://127.0.0.1:${port}`))

for (;;) {
  await sleep(5000)
  await catchUp().catch((failure) => console.log(String(failure)))
}
