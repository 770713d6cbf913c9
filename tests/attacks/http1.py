"""Sends raw bytes and reads what comes back, without any idea of what a good request is."""

import concurrent.futures
import socket
from dataclasses import dataclass, field

import corpus
from servers import HOST, LINKS

# Nothing is asserted about time: this only bounds how long a server that never answers holds us.
DEADLINE = 10
# How long an answer may be followed by another one before the probe is sent. Answers that come later are
# still read, before the probe's own.
QUIET = 0.25
PROBE = f"GET /PROBE HTTP/1.1\r\nHost: {HOST}\r\nConnection: close\r\n\r\n".encode()


@dataclass
class Answer:
    status: int
    headers: list = field(default_factory=list)
    body: bytes = b""

    def header(self, name):
        return next((value for key, value in self.headers if key == name), "")


def parse(data, methods=()):
    """Splits what a server sent into answers; gives them and what was left."""
    answers = []
    methods = list(methods)
    while data:
        head, found, rest = data.partition(b"\r\n\r\n")
        if not found or not head.startswith(b"HTTP/1."):
            break
        lines = head.decode("latin-1").split("\r\n")
        headers = [(name.strip().lower(), value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])]
        answer = Answer(int(lines[0].split()[1]), headers)
        if answer.status >= 200 and answer.status not in (204, 304) and not (methods and methods.pop(0) == "HEAD"):
            if answer.header("transfer-encoding") == "chunked":
                answer.body, rest = unchunk(rest)
            elif answer.header("content-length"):
                length = int(answer.header("content-length"))
                answer.body, rest = rest[:length], rest[length:]
            else:
                answer.body, rest = rest, b""
        answers.append(answer)
        data = rest
    return answers, data


def unchunk(data):
    body = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        length = int(size.split(b";")[0] or b"0", 16)
        body, data = body + data[:length], data[length + 2:]
        if length == 0:
            return body, data


def read(sock, seconds):
    """What comes next; nothing means the end, `None` that nothing came in time."""
    sock.settimeout(seconds)
    try:
        return sock.recv(1 << 16)
    except TimeoutError:
        return None
    except OSError:
        return b""


def exchange(port, raw, head=False, source=None):
    """Sends bytes on a fresh connection; gives the answers, and how the connection was left.

    A connection counts as open when it answers one more request, the probe. This needs no guess of how long
    a slow server may take to close.
    """
    data = b""
    with socket.create_connection(("127.0.0.1", port), DEADLINE, (source, 0) if source else None) as sock:
        try:
            sock.sendall(raw)
        except OSError:
            pass
        piece = read(sock, DEADLINE)
        while piece:
            data += piece
            piece = read(sock, QUIET)
        ended = "closed"
        if piece is None:
            try:
                sock.sendall(PROBE)
            except OSError:
                pass
            while piece := read(sock, DEADLINE):
                data += piece
            ended = "waits" if piece is None else "closed"
    answers, left = parse(data, ["HEAD"] if head else [])
    if answers and answers[-1].header("location") == LINKS["/PROBE"]:
        answers.pop()
        ended = "open"
    return answers, left, ended


def verdict(port, raw, head=False):
    """One line about an exchange: statuses in order, what became of the connection, and what must not be."""
    answers, left, ended = exchange(port, raw, head)
    said = [str(answer.status) for answer in answers]
    if left:
        said.append("frames" if left[3:4] == b"\4" else "bytes")
    if any(answer.header("location") == LINKS["/EVIL"] for answer in answers):
        said.append("SECOND")
    # No answer may carry a key on, or a header of the attacker's making.
    if any("SECRET" in value or name == "x-evil" for answer in answers for name, value in answer.headers):
        said.append("LEAKED")
    return " ".join(said + [ended])


def attack(targets, report, _long):
    with concurrent.futures.ThreadPoolExecutor(12) as pool:
        for target in targets:
            cases = list(corpus.cases())
            verdicts = pool.map(lambda case: verdict(target.plain, case[2], case[2].startswith(b"HEAD")), cases)
            for (group, name, _, expected), got in zip(cases, verdicts):
                report.add(group, name, target.name, got, expected)
