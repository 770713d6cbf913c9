"""One HTTP/2 connection over TLS that sends what it is told and notes what comes back."""

import socket
import ssl
import time

import hpack
from hyperframe.frame import Frame, GoAwayFrame, HeadersFrame, PingFrame, RstStreamFrame, SettingsFrame

from servers import HOST

PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
CODES = [
    "NO_ERROR", "PROTOCOL_ERROR", "INTERNAL_ERROR", "FLOW_CONTROL_ERROR", "SETTINGS_TIMEOUT", "STREAM_CLOSED",
    "FRAME_SIZE_ERROR", "REFUSED_STREAM", "CANCEL", "COMPRESSION_ERROR", "CONNECT_ERROR", "ENHANCE_YOUR_CALM",
    "INADEQUATE_SECURITY", "HTTP_1_1_REQUIRED",
]
# Bounds how long a server that never answers holds us; nothing is asserted about time.
DEADLINE = 15


def code(number):
    return CODES[number] if number < len(CODES) else hex(number)


def frame(kind, flags, stream, payload=b"", length=None):
    """A frame of raw bytes, for what a library refuses to build."""
    length = len(payload) if length is None else length
    return length.to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def request_fields(path="/SAFE", method="GET", more=(), authority=HOST):
    return [(":method", method), (":scheme", "https"), (":authority", authority), (":path", path), *more]


class Connection:
    """A connection; `settings` go out with the preface."""

    def __init__(self, port, settings=None, preface=PREFACE, receive_buffer=None):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        raw = socket.socket()
        if receive_buffer:
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        raw.settimeout(DEADLINE)
        raw.connect(("127.0.0.1", port))
        self.sock = context.wrap_socket(raw, server_hostname=HOST)
        # Plain HPACK without a table: what is sent does not depend on what was sent before.
        self.decoder = hpack.Decoder()
        self.decoder.max_header_list_size = 1 << 20
        self.buffer, self.ended, self.broken = b"", False, False
        self.statuses, self.resets, self.goaway, self.acks = {}, {}, None, 0
        self.send(preface + SettingsFrame(settings=settings or {}).serialize())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.sock.close()

    def send(self, data):
        """Sends bytes; gives whether the server still takes them."""
        if self.ended:
            return False
        view = memoryview(data)
        end = time.monotonic() + DEADLINE
        while view:
            self.sock.settimeout(0.02)
            try:
                view = view[self.sock.send(view):]
            except (TimeoutError, ssl.SSLWantWriteError):
                # A server that waits for us to read does not read either.
                self.receive(0.0)
                if time.monotonic() > end:
                    return False
            except OSError:
                self.broken = True
                # What it said before it closed is still to be read.
                while self.receive(1):
                    pass
                return False
            if self.ended:
                return False
        return True

    def receive(self, seconds):
        """Takes in what comes within a time; gives whether something did."""
        if self.ended:
            return False
        self.sock.settimeout(max(seconds, 0.001))
        try:
            data = self.sock.recv(1 << 16)
        except (TimeoutError, ssl.SSLWantReadError):
            return False
        except OSError:
            data = b""
        if not data:
            self.ended = True
            return False
        self.buffer += data
        while len(self.buffer) >= 9:
            head, length = Frame.parse_frame_header(memoryview(self.buffer[:9]))
            if len(self.buffer) < 9 + length:
                break
            head.parse_body(memoryview(self.buffer[9:9 + length]))
            self.buffer = self.buffer[9 + length:]
            self.note(head)
        return True

    def note(self, got):
        if isinstance(got, HeadersFrame):
            status = dict(self.decoder.decode(got.data)).get(":status")
            if status and status != "100":
                self.statuses[got.stream_id] = int(status)
        elif isinstance(got, RstStreamFrame):
            self.resets[got.stream_id] = got.error_code
        elif isinstance(got, GoAwayFrame):
            # The first says why; a second may say that it is over.
            if self.goaway is None:
                self.goaway = got.error_code
        elif isinstance(got, PingFrame) and "ACK" not in got.flags:
            self.send(PingFrame(flags=["ACK"], opaque_data=got.opaque_data).serialize())
        elif isinstance(got, SettingsFrame):
            if "ACK" in got.flags:
                self.acks += 1
            else:
                self.send(SettingsFrame(flags=["ACK"]).serialize())

    def until(self, holds):
        """Reads until a condition holds or the connection ends; gives whether it held."""
        end = time.monotonic() + DEADLINE
        while not holds() and not self.ended and time.monotonic() < end:
            self.receive(0.05)
        return holds()

    def headers(self, stream, fields, flags=0x5, more=b""):
        """Headers without Huffman codes or tables; 0x5 ends stream and headers."""
        return frame(1, flags, stream, more + block(fields))

    def alive(self, stream):
        """Whether the connection answers one more request, on a stream with a number not used before."""
        self.send(self.headers(stream, request_fields("/PROBE")))
        self.until(lambda: stream in self.statuses or stream in self.resets)
        return self.statuses.get(stream) == 307

    def verdict(self, stream, probe):
        """What became of a stream and of the connection, in words; a stream of `None` is none."""
        said = []
        # The server reads in order: when the probe is answered, so is all before it.
        is_alive = self.alive(probe)
        if stream is not None:
            self.until(lambda: stream in self.statuses or stream in self.resets or not is_alive)
        if stream in self.statuses:
            said.append(str(self.statuses[stream]))
        # A reset without error behind an answer says that the rest of the request is not wanted.
        if stream in self.resets and not (stream in self.statuses and self.resets[stream] == 0):
            said.append("RST " + code(self.resets[stream]))
        if is_alive:
            return " ".join(said + ["open"])
        self.until(lambda: False)
        if self.goaway is not None:
            said.append("GOAWAY " + code(self.goaway))
        return " ".join(said + ["closed" if self.ended or self.broken else "waits"])


def block(fields):
    """Literal fields without indexing, names as they are."""
    data = b""
    for name, value in fields:
        name, value = (part.encode("latin-1") if isinstance(part, str) else part for part in (name, value))
        data += b"\0" + integer(len(name), 7) + name + integer(len(value), 7) + value
    return data


def integer(value, bits):
    """An HPACK integer with the flag bits above it unset."""
    most = (1 << bits) - 1
    if value < most:
        return bytes([value])
    data, value = [most], value - most
    while value >= 128:
        data.append(value % 128 + 128)
        value //= 128
    return bytes(data + [value])
