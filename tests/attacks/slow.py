"""Slow and greedy clients: what is never finished, what is never read, and too much from one address."""

import concurrent.futures
import re
import socket
import ssl
import subprocess
import time

import http1
import malformed
from frames import Connection, block, frame
from servers import HOST

# Addresses of a network of our own, if `run` could make one; loopback is exempt from limits.
ATTACKER, OTHER, GUESSER = "198.51.100.1", "198.51.100.2", "198.51.100.3"
REQUEST = f"GET /SAFE HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()


def cut(low, high):
    """Verdicts of connections that end between two numbers of seconds."""
    return tuple(f"cut after {seconds} s" for seconds in range(low, high + 1))


# The limit, and what a busy machine may add to it.
SOON = cut(5, 25)
LATER = cut(60, 110)
HELLO = bytes.fromhex("16030102000100")


def attack(targets, report, long):
    cases = SHORT + (LONG if long else [])
    with concurrent.futures.ThreadPoolExecutor(2 * len(cases) * len(targets)) as pool:
        jobs = [(name, target, expected, pool.submit(case, target)) for name, case, expected in cases for target in targets]
        for name, target, expected, job in jobs:
            report.add("slow", name, target.name, job.result(), expected)
    if has_addresses():
        for name, case, expected in ADDRESSES:
            for target in targets:
                report.add("addresses", name, target.name, case(target), expected)
    if long:
        for name, options in TOOL:
            for target in targets:
                report.add("slowhttptest", name, target.name, tool(target, options), "available")


def has_addresses():
    with socket.socket() as sock:
        try:
            sock.bind((ATTACKER, 0))
            return True
        except OSError:
            return False


def connect(port, source=None, receive_buffer=None):
    sock = socket.socket()
    sock.settimeout(30)
    if receive_buffer:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    if source:
        sock.bind((source, 0))
    sock.connect(("127.0.0.1", port))
    return sock


def secure(port, alpn="http/1.1"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.set_alpn_protocols([alpn])
    return context.wrap_socket(connect(port), server_hostname=HOST)


def until_cut(sock, begun, longest=130, feed=None, pause=0.5):
    """Waits until the server ends a connection, with a piece from `feed` now and then."""
    while time.monotonic() - begun < longest:
        sock.settimeout(pause)
        try:
            if not sock.recv(1 << 16):
                break
        except (TimeoutError, ssl.SSLWantReadError):
            pass
        except OSError:
            break
        try:
            if feed:
                sock.sendall(feed)
        except OSError:
            break
    else:
        return "held"
    return f"cut after {time.monotonic() - begun:.0f} s"


def silent(port_of, first=b"", feed=None, wrap=connect, longest=130):
    """Says `first` and then nothing, or a byte now and then."""
    def case(target):
        begun = time.monotonic()
        with wrap(getattr(target, port_of)) as sock:
            if first:
                sock.sendall(first)
            return until_cut(sock, begun, longest, feed)
    return case


def silent_h2(data):
    def case(target):
        begun = time.monotonic()
        with Connection(target.tls) as connection:
            # Nothing may come between frames of one header, not even the answer to the server's settings.
            connection.until(lambda: connection.acks)
            connection.send(data)
            while connection.receive(1) or not connection.ended:
                if time.monotonic() - begun > 130:
                    return "held"
            return f"cut after {time.monotonic() - begun:.0f} s"
    return case


def slow_body(target):
    """One byte of a body each second, for the API behind; peers have none and answer at once."""
    begun, key = time.monotonic(), getattr(target, "key", "-")
    head = f"Host: {HOST}\r\nAuthorization: {key}\r\nContent-Type: application/json\r\nContent-Length: 1000"
    with connect(target.plain) as sock:
        sock.sendall(f"POST /redirections HTTP/1.1\r\n{head}\r\n\r\n".encode())
        return until_cut(sock, begun, feed=b" ", pause=1)


def slow_read(target):
    """Asks for more than the buffers hold and reads nothing; counts from when the server takes no more."""
    ask = f"GET /SAFE.png?w=1000&h=1000 HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode() * 1_000
    full = None
    with connect(target.plain, receive_buffer=4_096) as sock:
        sock.settimeout(0.5)
        while full is None or time.monotonic() - full < 150:
            try:
                sock.send(ask)
            except TimeoutError:
                full = full or time.monotonic()
            except OSError:
                return f"cut after {time.monotonic() - (full or time.monotonic()):.0f} s"
    return "held"


def many_connections(target):
    """300 connections of one address at once, each with one request; and then one of another address."""
    socks, served = [], 0
    try:
        for _ in range(300):
            try:
                sock = connect(target.plain, ATTACKER)
                sock.sendall(REQUEST)
                socks.append(sock)
            except OSError:
                continue
        for sock in socks:
            piece = http1.read(sock, http1.DEADLINE)
            served += bool(piece and piece.startswith(b"HTTP/1.1 307"))
        answers, _, _ = http1.exchange(target.plain, REQUEST, source=OTHER)
        other = "another served" if answers and answers[0].status == 307 else "another refused"
        return f"{served} of 300 served, {other}"
    finally:
        for sock in socks:
            sock.close()


def guess(count, prefix):
    """Requests for ids that nobody has, on one connection."""
    return b"".join(f"GET /{prefix}{n} HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode() for n in range(count))


def guesses(target):
    """2,000 unknown ids of one address; then a known one of it, and an unknown one of another address."""
    statuses = [answer.status for answer in http1.exchange(target.plain, guess(2_000, "N"), source=GUESSER)[0]]
    known = http1.exchange(target.plain, REQUEST, source=GUESSER)[0][0].status
    other = http1.exchange(target.plain, guess(1, "X"), source=OTHER)[0][0].status
    said = "limited" if statuses.count(429) > statuses.count(404) else "not limited"
    return f"{said}; known {known}, another's {other}"


def alarm(target):
    """Guesses until the alarm is raised, in the metrics and in the log."""
    if target.name != "waymark":
        return "-"
    begun = time.monotonic()
    while time.monotonic() - begun < 60:
        http1.exchange(target.plain, guess(1_000, "M"), source=GUESSER)
        if target.metric("waymark_edge_miss_storm") == 1:
            return "raised" if "miss storm" in (target.folder / "log").read_text() else "not in the log"
    return "not raised"


def tool(target, options):
    """slowhttptest with 300 connections for 30 s; its own probe tells whether the server still answers."""
    command = ["slowhttptest", "-c", "300", "-r", "100", "-l", "30", "-p", "5", "-u", f"http://127.0.0.1:{target.plain}/SAFE"]
    said = subprocess.run(command + options, capture_output=True, text=True, timeout=120).stdout
    # Colours and cursor moves are between the words.
    told = re.findall(r"service available:\s*(\w+)", re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", said))
    return "available" if told and "NO" not in told else f"not available {told.count('NO')} of {len(told)} times"


SHORT = [
    ("nothing said", silent("plain"), SOON),
    ("half a request line", silent("plain", b"GET /SAFE HT"), SOON),
    ("half a preface of HTTP/2", silent("plain", b"PRI * HTTP/2.0\r\n"), SOON),
    ("a header line each half second", silent("plain", REQUEST[:-2], feed=b"X: y\r\n"), SOON),
    ("TLS, nothing said", silent("tls"), SOON),
    ("TLS, half a ClientHello", silent("tls", HELLO), SOON),
    ("TLS, a byte of the handshake each half second", silent("tls", HELLO, feed=b"\0"), SOON),
    ("TLS done, nothing said", silent("tls", wrap=secure), SOON),
    ("TLS done, half a request", silent("tls", b"GET /SAFE HTTP/1.1\r\nHo", wrap=secure), SOON),
    ("HTTP/2, nothing behind the preface", silent_h2(b""), SOON),
    ("HTTP/2, headers that do not end", silent_h2(frame(malformed.HEADERS, 1, 1, block(malformed.fields()))), SOON),
]

LONG = [
    ("idle behind an answer", silent("plain", REQUEST), LATER),
    ("idle behind an answer, TLS", silent("tls", REQUEST, wrap=secure), LATER),
    ("idle behind an answer, HTTP/2", silent_h2(malformed.ask(malformed.fields())), LATER),
    ("half a second request", silent("plain", REQUEST + b"GET /SAFE HT"), LATER),
    ("a line of the second header each half second", silent("plain", REQUEST + REQUEST[:-2], feed=b"X: y\r\n"), cut(5, 110)),
    ("a byte of the body each second", slow_body, cut(20, 60)),
    ("answers that are not read", slow_read, cut(30, 130)),
]

ADDRESSES = [
    ("300 connections", many_connections, "200 of 300 served, another served"),
    ("2,000 guesses", guesses, "limited; known 307, another's 404"),
    ("alarm of a miss storm", alarm, "raised"),
]

TOOL = [
    ("headers (slowloris)", ["-H", "-i", "1", "-x", "24"]),
    ("body (R.U.D.Y.)", ["-B", "-i", "1", "-s", "8192", "-x", "10", "-t", "POST"]),
    ("ranges (Apache killer)", ["-R", "-a", "1", "-b", "3000", "-t", "HEAD"]),
    ("slow read", ["-X", "-w", "1", "-y", "16", "-n", "2", "-z", "32", "-k", "3"]),
]
