// A shop's backend in TypeScript. It calls the API with openapi-fetch and the types that openapi-typescript generates.
import createClient from 'openapi-fetch'
import type { components, paths } from './schema.js'

declare const process: { argv: string[] }

type Schemas = components['schemas']
type Api = ReturnType<typeof createClient<paths>>

const wait = (ms: number) => new Promise((done) => setTimeout(done, ms))
const unique = () => crypto.randomUUID().slice(0, 8)

async function connected(baseUrl: string, clientId: string, clientSecret: string): Promise<Api> {
  const api = createClient<paths>({ baseUrl })
  const body = { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret } as const
  const { data, error } = await api.POST('/oauth/token', { body })
  if (!data) throw new Error(error.error_description ?? error.error)
  return createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${data.access_token}` } })
}

function ordered(): Schemas['CheckoutRequest'] {
  return {
    merchant_order_id: `A-${unique()}`,
    total_amount: 9000,
    currency: 'GBP',
    return_url: 'https://shop.example/thanks',
    cancel_url: 'https://shop.example/basket',
    items: [
      {
        item_ref: 'standing',
        name: 'Standing ticket',
        quantity: 2,
        unit_price: 4500,
        currency: 'GBP',
        custom_data: { event_id: 'evt-881' },
      },
    ],
    metadata: { basket: '881' },
  }
}

// Return the content of a response. If the call was refused, throw its error code.
function held<Content>(answer: { data?: { data: Content }; error?: Schemas['ErrorEnvelope'] }): Content {
  if (answer.data) return answer.data.data
  throw new Error(`${answer.error?.error.code}: ${answer.error?.error.details[0]?.message}`)
}

async function bought(api: Api): Promise<string> {
  const header = { 'Idempotency-Key': crypto.randomUUID() }
  const created = held(await api.POST('/api/merchant/v1/checkouts', { params: { header }, body: ordered() }))
  const params = { path: { checkout_uuid: created.checkout_uuid } }
  const paid = held(await api.POST('/api/sandbox/v1/checkouts/{checkout_uuid}/pay', { params, body: {} }))
  if (paid.metadata['basket'] !== '881') throw new Error('no metadata')
  held(await api.POST('/api/merchant/v1/checkouts/{checkout_uuid}/capture', { params, body: {} }))
  return created.checkout_uuid
}

async function refunded(api: Api, checkoutUuid: string): Promise<string[]> {
  const params = { path: { checkout_uuid: checkoutUuid } }
  const before = held(await api.GET('/api/merchant/v1/checkouts/{checkout_uuid}', { params }))
  const seen: string[] = [before.status]
  const body = { merchant_refund_ref: `R-${unique()}`, reason: 'Show moved' }
  const { response } = await api.POST('/api/merchant/v1/checkouts/{checkout_uuid}/refund', { params, body })
  if (response.status !== 204) throw new Error(`refund: ${response.status}`)
  for (let asked = 0; !seen.includes('refunded'); asked += 1) {
    const read = held(await api.GET('/api/merchant/v1/checkouts/{checkout_uuid}', { params }))
    if (asked === 100) throw new Error(`still ${read.status}`)
    if (!seen.includes(read.status)) seen.push(read.status)
    await api.POST('/api/sandbox/v1/checkouts/{checkout_uuid}/advance', { params, body: { seconds: 5 } })
    await wait(100)
  }
  return seen
}

async function refusal(api: Api): Promise<string> {
  const params = { path: { checkout_uuid: crypto.randomUUID() } }
  const { error } = await api.GET('/api/merchant/v1/checkouts/{checkout_uuid}', { params })
  return error?.error.code ?? 'none'
}

// Return the feed's events about paid orders, and the types of its other events.
async function listed(api: Api): Promise<string[]> {
  const feed = held(await api.GET('/api/merchant/v1/events'))
  return feed.events.map((entry) => {
    const event = entry.event as Schemas['Event']
    return event.type === 'checkout.authorized' ? event.data.checkout_uuid : event.type
  })
}

// Process an event as a receiver does: ignore unknown types.
function heard(body: string): string {
  const event = JSON.parse(body) as Schemas['Event']
  switch (event.type) {
    case 'checkout.authorized':
      return `${event.data.checkout_uuid} ${event.data.amount}`
    default:
      return 'ignored'
  }
}

const [baseUrl = '', clientId = '', clientSecret = '', events = ''] = process.argv.slice(2)
const api = await connected(baseUrl, clientId, clientSecret)
const checkoutUuid = await bought(api)
const seen = await refunded(api, checkoutUuid)
const refused = await refusal(api)
const wanted = held(await api.GET('/api/merchant/v1/webhooks/subscription')).event_types
const log = held(await api.GET('/api/merchant/v1/webhooks/deliveries'))
const told = log.deliveries.map((attempt) => attempt.event_type)
console.log(JSON.stringify({ seen, refused, wanted, told, listed: await listed(api), heard: heard(events) }))
