# A shop's backend in Ruby that uses only the client that openapi-generator generates.
require 'json'
require 'securerandom'
require 'uri'
require 'checkout_client'

def connect(base_url, client_id, client_secret)
  CheckoutClient.configure do |config|
    config.scheme = URI(base_url).scheme
    config.host = URI(base_url).host + ":#{URI(base_url).port}"
  end
  asked = CheckoutClient::TokenRequest.new(grant_type: 'client_credentials', client_id: client_id, client_secret: client_secret)
  token = CheckoutClient::TokenApi.new.get_token(asked)
  CheckoutClient.configure { |config| config.access_token = token.access_token }
end

def ordered
  item = CheckoutClient::ItemRequest.new(
    item_ref: 'standing', name: 'Standing ticket – £45', quantity: 2, unit_price: 4500, currency: 'GBP',
    custom_data: { 'event_id' => 'evt-881' }
  )
  CheckoutClient::CheckoutRequest.new(
    merchant_order_id: "A-#{SecureRandom.hex(4)}", total_amount: 9000, currency: 'GBP',
    return_url: 'https://shop.example/thanks', cancel_url: 'https://shop.example/basket',
    items: [item], metadata: { 'basket' => '881' }
  )
end

# Create, pay and capture an order of two tickets. Return its id.
def bought
  created = CheckoutClient::CheckoutsApi.new.create_checkout(ordered, idempotency_key: SecureRandom.uuid)
  uuid = created.data.checkout_uuid
  paid = CheckoutClient::SandboxApi.new.sandbox_pay(uuid, pay_request: CheckoutClient::PayRequest.new)
  raise 'no metadata' unless paid.data.metadata.transform_keys(&:to_s)['basket'] == '881'

  CheckoutClient::CheckoutsApi.new.capture_checkout(uuid, capture_request: CheckoutClient::CaptureRequest.new)
  uuid
end

# Refund the order, and wait until the refund has ended. Return all statuses that the order had.
def refunded(uuid)
  checkouts = CheckoutClient::CheckoutsApi.new
  seen = [checkouts.read_checkout(uuid).data.status]
  asked = CheckoutClient::RefundRequest.new(merchant_refund_ref: "R-#{SecureRandom.hex(4)}", reason: 'Show moved')
  _, status, = checkouts.refund_checkout_with_http_info(uuid, asked)
  raise "refund: #{status}" unless status == 204

  100.times do
    seen |= [checkouts.read_checkout(uuid).data.status]
    return seen if seen.last == 'refunded'

    advance(uuid)
    sleep 0.1
  end
  raise "not refunded: #{seen}"
end

# Let time pass. The call is refused while the refund is sent to the provider.
def advance(uuid)
  CheckoutClient::SandboxApi.new.sandbox_advance(uuid, CheckoutClient::AdvanceRequest.new(seconds: 5))
rescue CheckoutClient::ApiError => e
  raise unless e.code == 409
end

def refusal
  CheckoutClient::CheckoutsApi.new.read_checkout(SecureRandom.uuid)
rescue CheckoutClient::ApiError => e
  CheckoutClient::ErrorEnvelope.build_from_hash(JSON.parse(e.response_body, symbolize_names: true)).error.code
end

# Return the ids of the paid orders in the event feed, and the types of the other events.
def listed
  feed = CheckoutClient::WebhooksApi.new.list_events(debug_return_type: 'Object')
  feed[:data][:events].map do |entry|
    known = entry[:event][:type] == 'checkout.authorized'
    next entry[:event][:type] unless known

    CheckoutClient::CheckoutAuthorizedEvent.build_from_hash(entry[:event]).data.checkout_uuid
  end
end

# Handle an event as a webhook receiver does. Ignore events of an unknown type.
def heard(body)
  envelope = JSON.parse(body, symbolize_names: true)
  return 'ignored' unless envelope[:type] == 'checkout.authorized'

  event = CheckoutClient::CheckoutAuthorizedEvent.build_from_hash(envelope)
  "#{event.data.checkout_uuid} #{event.data.amount}"
end

base_url, client_id, client_secret, event = ARGV
connect(base_url, client_id, client_secret)
webhooks = CheckoutClient::WebhooksApi.new
seen = refunded(bought)
puts JSON.generate(
  seen: seen, refused: refusal, wanted: webhooks.read_subscription.data.event_types,
  told: webhooks.list_delivery_attempts.data.deliveries.map(&:event_type), listed: listed, heard: heard(event)
)
