// For each line of JSON, {now, tolerance, cases: [{headers, body, secret}]}, print a line with the verdicts of each library:
// for each case, true if the library accepts it. `body` is base64. `now` is a Unix time, or null for the real time.
import readline from 'node:readline'
import { Webhook } from 'standardwebhooks'
import Stripe from 'stripe'

const realNow = Date.now
const { webhooks } = new Stripe('sk_test_calls_nobody')

const verifiers = {
  'stripe for Node': ({ headers, body, secret, tolerance }) =>
    webhooks.signature.verifyHeader(body, headers['x-service-signature'], secret, tolerance ?? undefined),
  'standardwebhooks for Node': ({ headers, body, secret }) => new Webhook(secret).verify(body, headers),
}

function accepts(verify, question) {
  try {
    verify(question)
    return true
  } catch {
    return false // some headers cause an error that is not of the library's own class
  }
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  const { now, tolerance, cases } = JSON.parse(line)
  Date.now = now === null ? realNow : () => now * 1000
  const questions = cases.map((item) => ({ ...item, tolerance, body: Buffer.from(item.body, 'base64') }))
  const verdicts = Object.entries(verifiers).map(([name, verify]) => [
    name,
    questions.map((question) => accepts(verify, question)),
  ])
  console.log(JSON.stringify(Object.fromEntries(verdicts)))
}
