// Verifies each webhook, captures what is held, answers: node receiver.mjs, with these variables set.
// CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID, CHECKOUT_CLIENT_SECRET; SIGNING_SECRETS, two while you rotate; PORT.
import { createHmac, timingSafeEqual } from 'node:crypto'
import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'

const { CHECKOUT_BASE_URL: base, CHECKOUT_CLIENT_ID: client_id, CHECKOUT_CLIENT_SECRET: client_secret } = process.env
const secrets = process.env.SIGNING_SECRETS.split(' ')
for (const table of ['seen', 'paid']) mkdirSync(table, { recursive: true }) // in your service: tables, each with a unique column
let token = { until: 0 }

class Refused extends Error {} // answered with 400; the message is one of the four reasons

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

async function post(path, body, seconds, headers = {}) {
  const answer = await fetch(base + path, {
    method: 'POST',
    body: JSON.stringify(body),
    headers: { 'Content-Type': 'application/json', ...headers },
    signal: AbortSignal.timeout(seconds * 1000),
  })
  return { status: answer.status, ...(await answer.json()) }
}

async function bearer() {
  if (Date.now() > token.until) { // a token is kept for its hour
    token = await post('/oauth/token', { grant_type: 'client_credentials', client_id, client_secret }, 3)
    token.until = token.status === 200 ? Date.now() + (token.expires_in - 60) * 1000 : 0
  }
  return { Authorization: `Bearer ${token.access_token}` }
}

// Whether the money has moved; false: the hold is over. Throws while that is not known.
async function capture(checkout) {
  for (const seconds of [8, 3]) { // a capture answers within 8 s, and all of it fits into a webhook's 15
    try {
      const { status, error } = await post(`/api/merchant/v1/checkouts/${checkout}/capture`, {}, seconds, await bearer())
      if (status === 200) return true
      if (error?.code === 'not_capturable') return false
      if (status === 401) token.until = 0
    } catch (silence) {
      console.log(String(silence))
    }
    await sleep(1000) // then again: it takes nothing twice
  }
  throw Error(`${checkout} is not captured yet`)
}

async function receive(request) {
  const chunks = []
  let size = 0
  for await (const chunk of request) if ((size += chunk.length) <= 1 << 20) chunks.push(chunk)
  const { id, type, data } = verify(request.headers['x-service-signature'] ?? '', Buffer.concat(chunks))
  if (existsSync(`seen/${id}`)) return // two deliveries at once may do the same: it does no harm
  if (type === 'checkout.authorized' && (await capture(data.checkout_uuid))) {
    writeFileSync(`paid/${data.checkout_uuid}`, '') // fulfil, slowly, what is here
  }
  writeFileSync(`seen/${id}`, '')
}

createServer(async (request, response) => {
  try {
    await receive(request)
    response.end('ok')
  } catch (failure) {
    const isRefused = failure instanceof Refused // whoever sent it: the body is neither kept nor logged
    if (!isRefused) console.log(String(failure))
    response.writeHead(isRefused ? 400 : 500).end(isRefused ? failure.message : 'send it again') // a 4xx would give the hold away
  }
}).listen(Number(process.env.PORT ?? 3000), '127.0.0.1')
