"""Another client, with a steady load of its own while the attack runs."""

import multiprocessing
import socket
import time

from servers import HOST

# A second of it has enough samples for a p99 that is not the maximum.
RATE = 200
# How long it runs before the attack begins, in seconds: a p99 that is compared needs more samples.
BEFORE, BEFORE_LONG = 1, 10
REQUEST = f"GET /SAFE HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode()


def percentile(values, share):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * share))] if values else float("inf")


def ask(port, stop, results, source):
    """Asks for one link at a fixed rate on one connection; a failure counts as an endless answer."""
    samples, failures, sock = [], [], None
    due = time.monotonic()
    while not stop.is_set():
        due += 1 / RATE
        time.sleep(max(0, due - time.monotonic()))
        begun = time.monotonic()
        try:
            if sock is None:
                sock = socket.create_connection(("127.0.0.1", port), 5, (source, 0) if source else None)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.sendall(REQUEST)
            answer = b""
            while b"\r\n\r\n" not in answer:
                piece = sock.recv(4096)
                if not piece:
                    raise ConnectionError
                answer += piece
            if b" 307 " not in answer.partition(b"\r\n")[0]:
                raise ConnectionError(answer)
            length = next((int(line.split(b":")[1]) for line in answer.lower().split(b"\r\n") if line.startswith(b"content-length:")), 0)
            body = len(answer.partition(b"\r\n\r\n")[2])
            while body < length:
                body += len(sock.recv(4096)) or length
            samples.append((begun, time.monotonic() - begun))
        except OSError as error:
            failures.append((begun, repr(error)))
            sock = None
        # What was missed meanwhile is not made up for: that would be a burst.
        due = max(due, time.monotonic() - 1 / RATE)
    results.put((samples, failures))


class Steady:
    """Runs in a process of its own, so that the attacker's does not disturb it."""

    def __init__(self, target, long=False, source=None):
        self.stopped, self.results = multiprocessing.Event(), multiprocessing.Queue()
        self.process = multiprocessing.Process(target=ask, args=(target.plain, self.stopped, self.results, source), daemon=True)
        self.process.start()
        time.sleep(BEFORE_LONG if long else BEFORE)

    def stop(self, begun):
        """Ends it; gives p99 in seconds before and during the attack, and the failures."""
        self.stopped.set()
        samples, failures = self.results.get(timeout=30)
        self.process.join()
        before = percentile([took for at, took in samples if at < begun], 0.99)
        during = percentile([took for at, took in samples if at >= begun], 0.99)
        return before, during, failures
