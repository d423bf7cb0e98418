# Makes, pays, captures and refunds an order: ruby quickstart.rb
# It needs CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID and CHECKOUT_CLIENT_SECRET.

require 'json'
require 'net/http'
require 'securerandom'

NEEDED = %w[CHECKOUT_BASE_URL CHECKOUT_CLIENT_ID CHECKOUT_CLIENT_SECRET].freeze
BASE_URL, CLIENT_ID, CLIENT_SECRET = NEEDED.map do |name|
  value = ENV.fetch(name, '')
  value.empty? ? abort("Set #{name} (see Quick start in the documentation).") : value
end
HEADERS = { 'Content-Type' => 'application/json' }

# Return the answer's JSON. If the call is refused, end with the reason.
def call(method, path, body = nil, more = {})
  uri = URI(BASE_URL + path)
  answer = Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https') do |http|
    http.send_request(method, uri, body&.to_json, HEADERS.merge(more))
  end
  abort "#{answer.code} #{answer.body}" unless answer.is_a?(Net::HTTPSuccess)
  answer.body.to_s.empty? ? {} : JSON.parse(answer.body)
end

# A token is valid for an hour: use it for all calls.
client = { client_id: CLIENT_ID, client_secret: CLIENT_SECRET }
token = call('POST', '/oauth/token', { grant_type: 'client_credentials', **client })
HEADERS['Authorization'] = "Bearer #{token['access_token']}"

# An order. The key prevents a second order if you repeat the call.
order_id = "A-#{SecureRandom.uuid}"
price = { quantity: 1, unit_price: 2250, currency: 'GBP' }
order = {
  merchant_order_id: order_id, total_amount: 2250, currency: 'GBP',
  items: [{ item_ref: 'standing', name: 'Standing ticket', **price }],
  return_url: 'https://shop.example/thanks',
  cancel_url: 'https://shop.example/basket'
}
key = { 'Idempotency-Key' => order_id }
created = call('POST', '/api/merchant/v1/checkouts', order, key)['data']
uuid = created['checkout_uuid']
checkout = "/api/merchant/v1/checkouts/#{uuid}"
puts "#{created['status']} #{created['checkout_url']}" # send your customer there

# The customer pays. In the sandbox, this call pays for them.
# Or open the address and pay with 4242 4242 4242 4242.
paid = call('POST', "/api/sandbox/v1/checkouts/#{uuid}/pay", {})['data']
puts "#{paid['status']} until #{paid['capture_before']}" # capture by then

# Capture: after this answer the money has moved. Now fulfil the order.
puts call('POST', "#{checkout}/capture", {})['data']['status']

# Refund: accepted at once, settled when the provider confirms it.
call('POST', "#{checkout}/refund", { merchant_refund_ref: "R-#{order_id}" })
sleep 1 while (read = call('GET', checkout)['data'])['status'] == 'refunding'
puts "#{read['status']} #{read['refunded_amount']}"
