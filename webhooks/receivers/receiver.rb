# Verifies each webhook, captures the held checkout, and answers: ruby receiver.rb
# It needs CHECKOUT_BASE_URL, CHECKOUT_CLIENT_ID, CHECKOUT_CLIENT_SECRET
# and SIGNING_SECRETS (two secrets while you rotate). Set PORT for another port than 3000.

require 'fileutils'
require 'json'
require 'net/http'
require 'openssl'
require 'socket'
require 'time'
require 'timeout'

NEEDED = %w[CHECKOUT_BASE_URL CHECKOUT_CLIENT_ID CHECKOUT_CLIENT_SECRET SIGNING_SECRETS].freeze
BASE_URL, CLIENT_ID, CLIENT_SECRET, SECRETS = NEEDED.map do |name|
  next ENV[name] unless ENV.fetch(name, '').strip.empty?

  abort "Set #{name} (see Quick start and Receivers in the documentation)."
end
CLIENT = { client_id: CLIENT_ID, client_secret: CLIENT_SECRET }.freeze
PORT = Integer(ENV['PORT'] || 3000)
ORDERS = '/api/merchant/v1/checkouts'
TOKEN = {}

def ago(seconds)
  (Time.now - seconds).utc.iso8601
end

STARTED = ago(120) # a hold lasts two minutes, so the first catch-up misses no held checkout

class Refused < StandardError; end # answered with 400; the message is one of the four reasons

def verify(header, body)
  entries = header.split(',', -1).map { |entry| entry.partition('=') }
  times, signatures = %w[t v1].map { |name| entries.filter_map { |entry| entry[2] if entry[0] == name } }
  is_whole = entries.all? { |_, equals, _| equals == '=' } && times.one? && signatures.any?
  raise Refused, 'malformed_header' unless is_whole && times[0].match?(/\A[0-9]{1,12}\z/)

  secrets = SECRETS.split # no empty secrets: anyone can sign with an empty secret
  expected = secrets.map { |secret| OpenSSL::HMAC.hexdigest('SHA256', secret, "#{times[0]}.#{body}") }
  matches = signatures.product(expected).count { |one, other| OpenSSL.secure_compare(one, other) }
  raise Refused, 'no_matching_signature' if matches.zero?
  raise Refused, 'timestamp_out_of_tolerance' if (Time.now.to_i - times[0].to_i).abs > 300

  event = parse(body.dup.force_encoding('UTF-8'))
  event.is_a?(Hash) ? event : raise(Refused, 'invalid_json')
end

def parse(text)
  JSON.parse(text) if text.valid_encoding?
rescue JSON::ParserError
  nil
end

# Return the status (0 if there was no answer), the answer, and the seconds to wait before another try.
def call(method, path, body, seconds, headers = {})
  uri = URI(BASE_URL + path)
  answer = Timeout.timeout(seconds) do
    Net::HTTP.start(uri.host, uri.port, use_ssl: uri.scheme == 'https') do |http|
      http.send_request(method, uri, body&.to_json, { 'Content-Type' => 'application/json', **headers })
    end
  end
  puts "#{method} #{path} was answered #{answer.code} #{answer.body}" if answer.code != '200'
  [answer.code.to_i, JSON.parse(answer.body), Integer(answer['Retry-After'] || 1, exception: false) || 1]
rescue StandardError => e
  puts "#{method} #{path} was not answered: #{e.message}"
  [0, {}, 1]
end

# Make a call with the token, which is reused until the service refuses it.
def authorized(method, path, body = nil, seconds = 8)
  TOKEN[:value] ||= call('POST', '/oauth/token', { grant_type: 'client_credentials', **CLIENT }, 3)[1]['access_token']
  answer = call(method, path, body, seconds, 'Authorization' => "Bearer #{TOKEN[:value]}")
  TOKEN.delete(:value) if answer[0] == 401
  answer
end

# Fulfil a checkout if its money has moved. Raise an error if this is not known within the seconds.
def capture(checkout, seconds)
  clock = -> { Process.clock_gettime(Process::CLOCK_MONOTONIC) }
  finish = clock.call + seconds
  loop do
    status, answer, wait = authorized('POST', "#{ORDERS}/#{checkout}/capture", {}, finish - clock.call)
    return fulfil(checkout) if status == 200
    return if answer.dig('error', 'code') == 'not_capturable' # the hold is over
    raise "#{checkout} is not captured yet" if clock.call + wait + 1 > finish

    sleep wait # a second try is safe: the service captures only once
  end
end

# Mark the order as paid. A second call for the same order changes nothing. Do slow work elsewhere.
def fulfil(checkout)
  FileUtils.touch("paid/#{checkout}")
end

# Capture held checkouts; fulfil those captured since the cursor. Store the cursor with your orders.
def catch_up
  held = []
  more = ''
  while more # the newest come first, so the hold that ends soonest is on the last page
    page = authorized('GET', "#{ORDERS}?status=authorized&limit=200#{more}")[1].fetch('data')
    held += page['checkouts']
    more = page['next_cursor'] && "&cursor=#{page['next_cursor']}"
  end
  held.sort_by { |one| one['capture_before'] }.each do |one|
    next if one['pending_operation'] || one['authorized_at'] > ago(10) # its webhook captures it

    capture(one['checkout_uuid'], 8)
  rescue StandardError => e
    puts e.message
  end
  loop do
    from = File.exist?('cursor') ? "cursor=#{File.read('cursor')}" : "updated_after=#{STARTED}"
    page = authorized('GET', "#{ORDERS}?sort=updated_at&limit=200&#{from}")[1].fetch('data')
    page['checkouts'].each { |one| fulfil(one['checkout_uuid']) if one['status'] == 'captured' }
    File.write('cursor', page['next_cursor'])
    break if page['checkouts'].size < 200
  end
end

def catch_up_for_ever
  loop do
    sleep 5
    catch_up
  rescue StandardError => e
    puts "could not catch up: #{e.message}"
  end
end

def receive(header, body)
  event = verify(header, body)
  marker = "seen/#{event['id']}."
  return if File.exist?(marker) # two deliveries can pass this check at the same time, which does no harm

  # A webhook must be answered within 15 s.
  capture(event['data']['checkout_uuid'], 11) if event['type'] == 'checkout.authorized'
  FileUtils.touch(marker)
end

# Return the signature and the body of a request. In your service, your web framework reads the request.
def read_request(socket)
  headers = Hash.new('')
  while (line = socket.gets("\r\n", 16_384)&.chomp) && !line.empty? && headers.size < 100
    name, value = line.split(':', 2)
    headers[name.downcase] = value.to_s.strip
  end
  [headers['x-service-signature'], socket.read(headers['content-length'].to_i.clamp(0, 1 << 20))]
end

# Return the status and the words of the answer to a delivery.
def answer_to(header, body)
  receive(header, body)
  [200, 'ok']
rescue Refused => e # the sender is unknown: do not store or log the body
  [400, e.message]
rescue StandardError => e
  puts e.message
  [500, 'send it again'] # a 4xx would end the retries, and the hold would be lost
end

def serve(socket)
  request = Timeout.timeout(10) { read_request(socket) unless socket.eof? }
  return unless request

  status, words = answer_to(*request)
  puts "a delivery is answered #{status} #{words}"
  socket.write "HTTP/1.1 #{status} #{words}\r\nContent-Length: #{words.size}\r\nConnection: close\r\n\r\n#{words}"
rescue StandardError => e
  puts "a request broke off: #{e.message}"
ensure
  socket.close
end

$stdout.sync = true
FileUtils.mkdir_p(%w[seen paid]) # in your service, use tables, each with a unique column
Thread.new { catch_up_for_ever }
server = TCPServer.new('127.0.0.1', PORT)
puts "listening on http://127.0.0.1:#{PORT}"
loop { Thread.new(server.accept) { |socket| serve(socket) } }
