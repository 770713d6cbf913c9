"""Malformed HTTP/2: name, frames, and what must become of stream 1 and of the connection."""

from hyperframe.frame import SettingsFrame

from frames import block, frame, integer, request_fields as fields
from servers import HOST

DATA, HEADERS, PRIORITY, RST, SETTINGS, PUSH, PING, GOAWAY, WINDOW, CONTINUATION = range(10)
END_STREAM, END_HEADERS, PADDED, WITH_PRIORITY = 0x1, 0x4, 0x8, 0x20
WHOLE = END_STREAM | END_HEADERS


def ask(request, flags=WHOLE, stream=1):
    return frame(HEADERS, flags, stream, block(request))


def more(*lines, **kwargs):
    return ask(fields(more=lines, **kwargs))


def length(announced, body, **kwargs):
    """A request that announces a length and sends another one."""
    return ask(fields(method="POST", more=[("content-length", announced)], **kwargs), END_HEADERS) + frame(DATA, END_STREAM, 1, body)


def number(value):
    return value.to_bytes(4, "big")


def setting(key, value):
    return frame(SETTINGS, 0, 0, key.to_bytes(2, "big") + number(value))


PSEUDO = {name: (name, value) for name, value in fields()}
PROTOCOL = "RST PROTOCOL_ERROR open"
GONE = "GOAWAY PROTOCOL_ERROR closed"
# The method is refused without a look at the body: the answer may be out before the fault is seen.
LATE = (PROTOCOL, "405 RST PROTOCOL_ERROR open", "405 open")

REQUESTS = [
    ("a request", ask(fields()), "307 open"),
    ("no :path", ask([f for f in fields() if f[0] != ":path"]), PROTOCOL),
    ("no :method", ask([f for f in fields() if f[0] != ":method"]), PROTOCOL),
    ("no :scheme", ask([f for f in fields() if f[0] != ":scheme"]), PROTOCOL),
    ("no :authority, no host", ask([f for f in fields() if f[0] != ":authority"]), "421 open"),
    ("no :authority, host instead", ask([f for f in fields(more=[("host", HOST)]) if f[0] != ":authority"]), "307 open"),
    (":authority and host differ", more(("host", "evil.test")), "400 open"),
    ("two hosts", more(("host", HOST), ("host", "evil.test")), "400 open"),
    (":authority of another", ask(fields(authority="evil.test")), "421 open"),
    (":authority with credentials", ask(fields(authority=f"x@{HOST}")), "421 open"),
    (":authority empty", ask(fields(authority="")), PROTOCOL),
    (":path empty", ask(fields("")), PROTOCOL),
    (":path without a slash", ask(fields("SAFE")), PROTOCOL),
    (":path *", ask(fields("*")), "404 open"),
    (":path absolute", ask(fields(f"https://{HOST}/SAFE")), PROTOCOL),
    (":path with a line end", ask(fields("/SAFE\r\nx: y")), PROTOCOL),
    (":path with a space", ask(fields("/SAFE HTTP/1.1")), PROTOCOL),
    (":path of 3 KiB", ask(fields("/SAFE?" + "a" * 3_072)), "400 open"),
    (":path twice", ask([*fields(), PSEUDO[":path"]]), PROTOCOL),
    (":method twice", ask([PSEUDO[":method"], *fields()]), PROTOCOL),
    (":method with a line end", ask(fields(method="GET /EVIL HTTP/1.1\r\n")), GONE),
    (":scheme of rubbish", ask([(n, "ht tp" if n == ":scheme" else v) for n, v in fields()]), PROTOCOL),
    (":status in a request", ask([*fields(), (":status", "200")]), PROTOCOL),
    (":unknown", ask([*fields(), (":unknown", "x")]), GONE),
    (":protocol without CONNECT", ask([*fields(), (":protocol", "websocket")]), PROTOCOL),
    ("pseudo field behind a field", ask([*fields()[:3], ("x", "y"), fields()[3]]), PROTOCOL),
    ("CONNECT", ask([(":method", "CONNECT"), (":authority", f"{HOST}:443")]), "404 open"),
    ("CONNECT with :path", ask(fields(method="CONNECT")), PROTOCOL),
    ("connection", more(("connection", "close")), PROTOCOL),
    ("keep-alive", more(("keep-alive", "1")), PROTOCOL),
    ("proxy-connection", more(("proxy-connection", "close")), PROTOCOL),
    ("transfer-encoding", more(("transfer-encoding", "chunked")), PROTOCOL),
    ("upgrade", more(("upgrade", "h2c")), PROTOCOL),
    ("te: gzip", more(("te", "gzip")), PROTOCOL),
    ("te: trailers", more(("te", "trailers")), "307 open"),
    ("name in upper case", more(("X-Upper", "y")), GONE),
    ("name empty", more(("", "y")), GONE),
    ("name with a space", more(("x y", "z")), GONE),
    ("name with a colon", more(("x:y", "z")), GONE),
    ("name with a line end", more(("x\r\ny", "z")), GONE),
    ("value with a line end", more(("x", "y\r\nz: 1")), GONE),
    ("value with LF", more(("x", "y\nz: 1")), GONE),
    ("value with NUL", more(("x", "y\0z")), GONE),
    ("61 fields more", more(*((f"x-{n}", "y") for n in range(61))), "307 open"),
    ("65 fields more", more(*((f"x-{n}", "y") for n in range(65))), "400 open"),
    ("length of less than the body", length("3", b"hello"), LATE),
    ("length of more than the body", length("9", b"hello"), LATE),
    ("length without a body", more(("content-length", "5")), PROTOCOL),
    ("length of words", length("all", b"hello"), LATE),
    ("length negative", length("-1", b"hello"), LATE),
    ("length twice, differing", ask(fields(method="POST", more=[("content-length", "5"), ("content-length", "6")]), END_HEADERS) + frame(DATA, END_STREAM, 1, b"hello"), LATE),
    ("length to the API behind", length("9", b"hello", path="/redirections"), PROTOCOL),
    ("trailers with a pseudo field", ask(fields(method="POST"), END_HEADERS) + ask([(":path", "/EVIL")]), LATE),
    ("trailers that do not end it", ask(fields(method="POST"), END_HEADERS) + ask([("x", "y")], END_HEADERS), LATE),
]

FRAMES = [
    ("HEADERS on stream 0", ask(fields(), stream=0), GONE),
    ("HEADERS on an even stream", ask(fields(), stream=2), GONE),
    ("HEADERS on an older stream", ask(fields(), stream=5) + ask(fields(), stream=3), GONE),
    ("HEADERS with too much padding", frame(HEADERS, WHOLE | PADDED, 1, b"\xff" + block(fields())), GONE),
    ("HEADERS that depend on themselves", frame(HEADERS, WHOLE | WITH_PRIORITY, 1, number(1) + b"\x10" + block(fields())), PROTOCOL),
    ("HEADERS cut short", frame(HEADERS, WHOLE | WITH_PRIORITY, 1, b"\0\0"), GONE),
    ("DATA on stream 0", frame(DATA, 0, 0, b"x"), GONE),
    ("DATA on an idle stream", frame(DATA, 0, 1, b"x"), GONE),
    ("DATA with too much padding", ask(fields(method="POST"), END_HEADERS) + frame(DATA, PADDED, 1, b"\xffx"), GONE),
    ("DATA behind the end", ask(fields()) + frame(DATA, END_STREAM, 1, b"x"), GONE),
    ("PRIORITY of 4 bytes", frame(PRIORITY, 0, 1, b"\0" * 4), GONE),
    ("PRIORITY on stream 0", frame(PRIORITY, 0, 0, b"\0" * 5), GONE),
    ("PRIORITY on itself", frame(PRIORITY, 0, 1, number(1) + b"\x10"), PROTOCOL),
    ("PRIORITY in a loop", frame(PRIORITY, 0, 1, number(3) + b"\x10") + frame(PRIORITY, 0, 3, number(1) + b"\x10") + ask(fields()), "307 open"),
    ("RST_STREAM on stream 0", frame(RST, 0, 0, number(8)), GONE),
    ("RST_STREAM on an idle stream", frame(RST, 0, 1, number(8)), GONE),
    ("RST_STREAM of 3 bytes", ask(fields()) + frame(RST, 0, 1, b"\0" * 3), GONE),
    ("SETTINGS on stream 1", frame(SETTINGS, 0, 1), GONE),
    ("SETTINGS of 5 bytes", frame(SETTINGS, 0, 0, b"\0" * 5), GONE),
    ("SETTINGS, ack with content", frame(SETTINGS, 1, 0, b"\0" * 6), GONE),
    ("SETTINGS, ack of nothing", frame(SETTINGS, 1, 0) * 3, GONE),
    ("SETTINGS, push of 2", setting(2, 2), GONE),
    ("SETTINGS, window over 2^31", setting(4, 1 << 31), GONE),
    ("SETTINGS, frames of 1 byte", setting(5, 1), GONE),
    ("SETTINGS, frames of 2^24", setting(5, 1 << 24), GONE),
    ("SETTINGS, unknown", setting(0x7777, 1), "open"),
    ("SETTINGS, table of 4 GiB", setting(1, (1 << 32) - 1) + ask(fields()), "307 open"),
    ("PUSH_PROMISE", frame(PUSH, END_HEADERS, 1, number(2) + block(fields())), GONE),
    ("PING of 7 bytes", frame(PING, 0, 0, b"\0" * 7), GONE),
    ("PING on stream 1", frame(PING, 0, 1, b"\0" * 8), GONE),
    ("PING, ack of nothing", frame(PING, 1, 0, b"\0" * 8), "open"),
    ("GOAWAY on stream 1", frame(GOAWAY, 0, 1, b"\0" * 8), GONE),
    ("GOAWAY of 7 bytes", frame(GOAWAY, 0, 0, b"\0" * 7), GONE),
    ("WINDOW_UPDATE of 0, connection", frame(WINDOW, 0, 0, number(0)), GONE),
    ("WINDOW_UPDATE of 3 bytes", frame(WINDOW, 0, 0, b"\0" * 3), GONE),
    ("WINDOW_UPDATE on an idle stream", frame(WINDOW, 0, 1, number(1)), GONE),
    ("WINDOW_UPDATE over 2^31, connection", frame(WINDOW, 0, 0, number((1 << 31) - 1)) * 2, "GOAWAY FLOW_CONTROL_ERROR closed"),
    ("CONTINUATION of nothing", frame(CONTINUATION, END_HEADERS, 1, block(fields())), GONE),
    ("CONTINUATION behind the end", ask(fields()) + frame(CONTINUATION, END_HEADERS, 1, b""), GONE),
    ("CONTINUATION on another stream", ask(fields(), END_STREAM) + frame(CONTINUATION, END_HEADERS, 3, b""), GONE),
    ("PING between headers", ask(fields(), END_STREAM) + frame(PING, 0, 0, b"\0" * 8), GONE),
    ("frame of 16 KiB and one byte", frame(DATA, 0, 1, b"x" * 16_385), "GOAWAY FRAME_SIZE_ERROR closed"),
    ("frame that says 16 MiB", frame(DATA, 0, 1, b"x", length=(1 << 24) - 1), "GOAWAY FRAME_SIZE_ERROR closed"),
    ("frame of unknown kind", frame(0xEE, 0xFF, 1, b"x" * 100) + ask(fields()), "307 open"),
    ("HPACK, index 0", frame(HEADERS, WHOLE, 1, b"\x80"), GONE),
    ("HPACK, index of nothing", frame(HEADERS, WHOLE, 1, b"\xff\x80\x01"), GONE),
    ("HPACK, endless integer", frame(HEADERS, WHOLE, 1, b"\xff" + b"\xff" * 20), GONE),
    ("HPACK, Huffman rubbish", frame(HEADERS, WHOLE, 1, b"\0\x84\xff\xff\xff\xff\x01x"), GONE),
    ("HPACK, text cut short", frame(HEADERS, WHOLE, 1, b"\0" + integer(100, 7) + b"x"), GONE),
    ("HPACK, table of 1 MiB", frame(HEADERS, WHOLE, 1, b"\x3f" + integer((1 << 20) - 31, 7)[0:] + block(fields())), GONE),
    ("HPACK, table changed behind a field", frame(HEADERS, WHOLE, 1, block(fields()) + b"\x20"), GONE),
]

PREFACES = [
    ("preface of another protocol", b"GET / HTTP/1.1\r\n\r\n12345678", "GOAWAY PROTOCOL_ERROR closed"),
    ("preface cut by frames", b"PRI * HTTP/2.0\r\n\r\nSM", "GOAWAY PROTOCOL_ERROR closed"),
]

# Settings go out with each preface; a first frame of another kind needs a preface of its own.
assert SettingsFrame().serialize()[3] == SETTINGS
