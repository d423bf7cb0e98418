"""Lists addresses and URLs that are forbidden or allowed for webhooks, in every spelling that we know of."""

import ipaddress

# The blocks in IANA's special-purpose registries, blocks that RFCs have withdrawn, and Azure's platform
# address. The list is independent of targets.py, so that it can find errors there.
V4_BLOCKS = [
    *(
        "0.0.0.0/8",
        "10.0.0.0/8",
        "100.64.0.0/10",
        "127.0.0.0/8",
        "168.63.129.16/32",
        "169.254.0.0/16",
        "172.16.0.0/12",
    ),
    *("192.0.0.0/24", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24"),
    *("192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15", "198.51.100.0/24", "203.0.113.0/24"),
    *("224.0.0.0/4", "233.252.0.0/24", "240.0.0.0/4", "255.255.255.255/32"),
]
V6_BLOCKS = [
    *("::/128", "::1/128", "::/96", "::ffff:0:0/96", "::ffff:0:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48"),
    *("100::/64", "100:0:0:1::/64", "2001::/23", "2001::/32", "2001:1::/48", "2001:2::/48", "2001:3::/32"),
    *("2001:4:112::/48", "2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16"),
    *("2620:4f:8000::/48", "3ffe::/16", "3fff::/20", "4000::/2", "5f00::/16", "fc00::/7", "fe80::/10"),
    *("fec0::/10", "ff00::/8"),
]
BLOCKS = [ipaddress.ip_network(block) for block in (*V4_BLOCKS, *V6_BLOCKS)]

INTERNAL = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "10.255.255.255", "100.64.0.1", "100.127.255.255", "127.0.0.1"),
    *("127.255.255.254", "169.254.169.254", "169.254.170.2", "172.16.0.1", "172.31.255.255", "192.0.0.1"),
    *("192.0.0.8", "192.0.2.1", "192.31.196.1", "192.52.193.1", "192.88.99.1", "192.168.1.1", "192.175.48.1"),
    *("198.18.0.1", "198.19.255.255", "198.51.100.1", "203.0.113.1", "224.0.0.1", "239.1.1.1", "240.0.0.1"),
    *("255.255.255.255", "100.100.100.200", "168.63.129.16"),
    *("::", "::1", "::7f00:1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::ffff:0:7f00:1", "64:ff9b::7f00:1"),
    *("64:ff9b::808:808", "64:ff9b:1::1", "100::1", "2001::1", "2001:0:7f00:1::", "2001:2::1", "2001:10::1"),
    *("2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:808:808::1", "2620:4f:8000::1", "3ffe::1"),
    *("3fff::1", "4000::1", "5f00::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fe80::1%eth0", "fec0::1"),
    *("ff02::1", "2a00:1450::5efe:7f00:1", "2a00:1450::200:5efe:7f00:1", "2a00:1450::1%eth0"),
]
LOOPBACK = frozenset({"127.0.0.1", "127.255.255.254", "::1"})
NO_ADDRESS = [
    *("", "localhost", "127.1", "0x7f.0.0.1", "0177.0.0.1", "127.000.000.001", "2130706433", "8.8.8.8 "),
    *("１２７.０.０.１", "127。0。0。1", "8.8.8.8/32", "[::1]", "::1]", "1.2.3.4.5", "8.8.8.8\n", "٨.٨.٨.٨"),
]
PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "9.9.9.9", "9.255.255.255", "11.0.0.1", "100.63.255.255", "100.128.0.1"),
    *("126.255.255.255", "128.0.0.1", "169.253.0.1", "169.255.0.1", "172.15.255.255", "172.32.0.1"),
    *("192.0.1.1", "192.0.3.1", "192.30.255.112", "192.31.195.255", "192.32.0.1", "192.52.192.1"),
    *("192.88.98.1", "192.167.255.255", "192.169.0.1", "192.175.49.1", "198.17.255.255", "198.20.0.1"),
    *("198.41.0.4", "198.51.99.1", "203.0.112.1", "203.0.114.1", "223.255.255.255", "13.32.0.1"),
    *("34.96.0.1", "52.95.110.1", "104.16.132.229", "151.101.1.69", "185.199.108.153"),
    *("2000::1", "2001:200::1", "2001:4860:4860::8888", "2001:67c:4e8::1", "2001:db7::1", "2001:db9::1"),
    *("2003::1", "2400:cb00::1", "2600:1f18::1", "2603:1030::1", "2604:a880::1", "2606:4700:4700::1111"),
    *("2620:fe::fe", "2620:4e::1", "2800:3f0:4001::1", "2a00:1450:4001:81b::200e", "2a01:4f8::1"),
    *("2a04:4e42::81", "2a05:d018::1", "2c0f:fb50:4003::1", "3ffd::1", "2a00:1450::5eff:7f00:1"),
]

# Hosts with which an https URL is invalid or forbidden.
BAD_HOSTS = [
    *(
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "2130706433",
        "0x7f.1",
        "0x7f000001",
        "0X7F.0.0.1",
        "0x7f.0x0.0x0.0x1",
    ),
    *("0177.0.0.1", "017700000001", "127.000.000.001", "0", "0.0.0.0", "127.0.0.1.", "1.2.3.4.5", "a.0x7f"),
    *("256.256.256.256", "4294967297", "8.8.8.8", "10.0.0.1", "192.168.1.1", "169.254.169.254"),
    *("100.64.0.1", "100.100.100.200", "255.255.255.255", "224.0.0.1"),
    *("１２７.０.０.１", "127。0。0。1", "127．0．0．1", "127｡0｡0｡1", "①②⑦.⓪.⓪.①", "127.0.0.1。"),
    *("[::1]", "[::]", "[0:0:0:0:0:0:0:1]", "[127.0.0.1]", "[::127.0.0.1]", "[::ffff:127.0.0.1]"),
    *("[::ffff:7f00:1]", "[::ffff:0:7f00:1]", "[64:ff9b::7f00:1]", "[64:ff9b:1::7f00:1]", "[2002:7f00:1::]"),
    *("[2001:0:7f00:1::]", "[2a00:1450::5efe:7f00:1]", "[fe80::1%25eth0]", "[fd00:ec2::254]", "[fec0::1]"),
    *("[ff02::1]", "[2001:db8::1]", "[2606:4700:4700::1111]", "[v1.x]", "[::1]x.com", "[x.com", "::1"),
    *("localhost", "localhost.", "LOCALHOST", "a.localhost", "localhost.localdomain", "ip6-localhost"),
    *(
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "ⓛocalhost",
        "ｌｏｃａｌｈｏｓｔ",
        "locaℓhost",
        "ⅼocalhost",
        "local\u00adhost",
        "lоcalhost",
    ),
    *("localhost。", "ſhop.ⓛocalhost", "metadata．google．internal", "ｍetadata.goog", "printer.ｌｏｃａｌ"),
    *("intranet", "com", "printer.local", "vault.internal", "x.onion", "router.home.arpa", "nas.lan"),
    *("wiki.intranet", "ad.corp", "metadata.google.internal", "instance-data.ec2.internal", "metadata.goog"),
    *("metadata.goog.", "METADATA.GOOG", "metadata.azure.com", "metadata.tencentyun.com", "instance-data"),
    *("shop..example.com", ".example.com", "-a.example.com", "a-.example.com", "sh_op.example.com"),
    *("shop.example.com..", "xn--", "xn--a.example.com.123", "*.example.com", "shop,example.com"),
    *(
        "sh%6fp.example.com",
        "%31%32%37.0.0.1",
        "shop%00.example.com",
        "shop%2eexample.com",
        "127%2e0%2e0%2e1",
    ),
    *("sh op.example.com", "shop\t.example.com", "shop\n.example.com", "\u202eshop.example.com"),
    *("a" * 64 + ".example.com", "a." * 130 + "com"),
]
BAD_URLS = [
    *(f"https://{host}/" for host in BAD_HOSTS),
    *("", "x", "https:", "https://", "https:///x", "//shop.example.com", "https:shop.example.com"),
    *("https:/shop.example.com", "https://?x", "https://:443/", "http://shop.example.com/"),
    *(
        "ftp://shop.example.com/",
        "file:///etc/passwd",
        "gopher://shop.example.com/",
        "ws://shop.example.com/",
    ),
    *("javascript://shop.example.com/%0aalert", "httpſ://shop.example.com/", "data:text/plain,x"),
    *("https://user@shop.example.com/", "https://u:p@shop.example.com/", "https://@shop.example.com/"),
    *(
        "https://:@shop.example.com/",
        "https://shop.example.com@127.0.0.1/",
        "https://127.0.0.1@shop.example.com/",
    ),
    *("https://shop.example.com:443@127.0.0.1/", "https://shop.example.com%2f@x.com/"),
    *("https://shop.example.com＠127.0.0.1/", "https://shop.example.com#@127.0.0.1/"),
    *("https://shop.example.com/#x", "https://shop.example.com/#"),
    *("https://shop.example.com:0/", "https://shop.example.com:22/", "https://shop.example.com:80/"),
    *("https://shop.example.com:1023/", "https://shop.example.com:65536/", "https://shop.example.com:x/"),
    *(
        "https://shop.example.com:-1/",
        "https://shop.example.com:443:443/",
    ),
    *(
        r"https://good.example.com\@127.0.0.1/",
        r"https://shop.example.com\x/",
        r"https://shop.example.com/\x",
    ),
    *(r"https:\\shop.example.com/", "https://shop.example.com/" + "a" * 2024),
    *("https://shop.example.com/" + "ä" * 400, " https://shop.example.com/", "https://shop.example.com/ "),
    *("https://shop.example.com/\r\nX: y", "https://shop.example.com/\t", "https://shop.example.com/\x00"),
    *("https://shop.example.com/\u2028", "ht\ntps://shop.example.com/"),
]
