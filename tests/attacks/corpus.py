"""Malformed and smuggling requests of HTTP/1: group, name, bytes, and what the edge must answer.

A verdict is the statuses in order and what becomes of the connection: `open` if it takes another request,
`closed`, or `waits` if neither. `SECOND` would be the answer to a request inside or behind of a body whose
end may be read in several ways, `LEAKED` a key or a header of the attacker's making in an answer.
"""

from servers import HOST

EVIL = f"GET /EVIL HTTP/1.1\r\nHost: {HOST}\r\n\r\n"
CHUNKED_EVIL = "0\r\n\r\n" + EVIL


def ask(*headers, body="", method="GET", path="/SAFE", version="HTTP/1.1", host=HOST):
    """A request; `host=None` leaves `Host` out."""
    lines = [f"{method} {path} {version}"] + ([f"Host: {host}"] if host is not None else []) + list(headers)
    return "\r\n".join(lines) + "\r\n\r\n" + body


def te(value, body=CHUNKED_EVIL, **kwargs):
    return ask(f"Transfer-Encoding: {value}", body=body, **kwargs)


def chunks(body, **kwargs):
    return te("chunked", body=body + EVIL, **kwargs)


def cl(*values, body=EVIL, **kwargs):
    return ask(*(f"Content-Length: {value}" for value in values), body=body, **kwargs)


BAD = "400 closed"
ONE = "307 closed"
KEPT = "307 open"

FRAMING = [
    ("CL and TE, CL covers all", ask(f"Content-Length: {len(CHUNKED_EVIL)}", "Transfer-Encoding: chunked", body=CHUNKED_EVIL), ONE),
    ("TE and CL, CL covers all", ask("Transfer-Encoding: chunked", f"Content-Length: {len(CHUNKED_EVIL)}", body=CHUNKED_EVIL), ONE),
    ("CL 0 and TE", ask("Content-Length: 0", "Transfer-Encoding: chunked", body=CHUNKED_EVIL), ONE),
    ("CL 4 and TE, chunk holds a request", ask("Content-Length: 4", "Transfer-Encoding: chunked", body=f"{len(EVIL):x}\r\n{EVIL}\r\n0\r\n\r\n"), ONE),
    ("CL and TE, POST", ask("Content-Length: 4", "Transfer-Encoding: chunked", body=CHUNKED_EVIL, method="POST"), "405 closed"),
    ("CL and TE to the API behind", ask("Content-Length: 4", "Transfer-Encoding: chunked", body=CHUNKED_EVIL, method="POST", path="/redirections"), "401 closed"),
    ("TE alone, a request behind it", te("chunked"), ONE),
    ("TE in upper case", te("CHUNKED"), ONE),
    ("TE xchunked", te("xchunked"), BAD),
    ("TE identity", te("identity"), BAD),
    ("TE chunked, identity", te("chunked, identity"), BAD),
    ("TE identity, chunked", te("identity, chunked"), BAD),
    ("TE gzip, chunked", te("gzip, chunked"), BAD),
    ("TE chunked, chunked", te("chunked, chunked"), BAD),
    ("TE twice", ask("Transfer-Encoding: chunked", "Transfer-Encoding: chunked", body=CHUNKED_EVIL), BAD),
    ("TE chunked, then TE identity", ask("Transfer-Encoding: chunked", "Transfer-Encoding: identity", body=CHUNKED_EVIL), BAD),
    ("TE identity, then TE chunked", ask("Transfer-Encoding: identity", "Transfer-Encoding: chunked", body=CHUNKED_EVIL), BAD),
    ("TE with a tab before the value", ask("Transfer-Encoding:\tchunked", body=CHUNKED_EVIL), ONE),
    ("TE with a vertical tab", te("\vchunked"), BAD),
    ("TE with a form feed", te("chunked\f"), BAD),
    ("TE with NUL", te("chunked\0"), BAD),
    ("TE with a trailing comma", te("chunked,"), BAD),
    ("TE with a leading comma", te(",chunked"), BAD),
    ("TE in quotes", te('"chunked"'), BAD),
    ("TE with a parameter", te("chunked;q=1"), BAD),
    ("TE empty", te(""), BAD),
    ("TE folded", ask("Transfer-Encoding:\r\n chunked", body=CHUNKED_EVIL), BAD),
    ("TE folded by a tab", ask("Transfer-Encoding: chunked\r\n\t, identity", body=CHUNKED_EVIL), BAD),
    ("TE with a space before the colon", ask("Transfer-Encoding : chunked", body=CHUNKED_EVIL), BAD),
    ("TE with a tab before the colon", ask("Transfer-Encoding\t: chunked", body=CHUNKED_EVIL), BAD),
    ("TE with a space before the name", ask(" Transfer-Encoding: chunked", body=CHUNKED_EVIL), BAD),
    ("TE with an underscore", ask("Transfer_Encoding: chunked", f"Content-Length: {len(CHUNKED_EVIL)}", body=CHUNKED_EVIL), KEPT),
    ("TE behind a bare CR", ask("X: y\rTransfer-Encoding: chunked", body=CHUNKED_EVIL), BAD),
    ("TE in HTTP/1.0", te("chunked", version="HTTP/1.0"), BAD),
    ("TE and CL in HTTP/1.0, kept alive", ask("Connection: keep-alive", "Content-Length: 5", "Transfer-Encoding: chunked", body=CHUNKED_EVIL, version="HTTP/1.0"), BAD),
    ("CL covers the request", cl(len(EVIL)), KEPT),
    ("CL covers the request, POST", cl(len(EVIL), method="POST"), "405 open"),
    ("CL covers the request, HEAD", cl(len(EVIL), method="HEAD"), KEPT),
    ("CL covers the request, API behind", cl(len(EVIL), method="POST", path="/redirections"), "401 open"),
    ("CL longer than what comes", cl(len(EVIL) + 500), ONE),
    ("CL twice, equal", cl(len(EVIL), len(EVIL)), KEPT),
    ("CL twice, 0 first", cl(0, len(EVIL)), BAD),
    ("CL twice, 0 last", cl(len(EVIL), 0), BAD),
    ("CL list, equal", cl(f"{len(EVIL)}, {len(EVIL)}"), BAD),
    ("CL list, differing", cl(f"0, {len(EVIL)}"), BAD),
    ("CL negative", cl(-1), BAD),
    ("CL with plus", cl(f"+{len(EVIL)}"), BAD),
    ("CL hexadecimal", cl(f"0x{len(EVIL):x}"), BAD),
    ("CL with a leading zero", cl(f"0{len(EVIL)}"), KEPT),
    ("CL with a fraction", cl(f"{len(EVIL)}.0"), BAD),
    ("CL with an exponent", cl("4e1"), BAD),
    ("CL with a space inside", cl("4 5"), BAD),
    ("CL empty", cl(""), BAD),
    ("CL of words", cl("all"), BAD),
    ("CL over 64 bits", cl("18446744073709551617"), BAD),
    ("CL of 64 bits", cl("18446744073709551615"), "431 closed"),
    ("CL of 63 bits", cl("9223372036854775807"), ONE),
    ("CL with NUL", cl(f"{len(EVIL)}\0"), BAD),
    ("CL with a space before the colon", ask(f"Content-Length : {len(EVIL)}", body=EVIL), BAD),
    ("CL folded", ask(f"Content-Length:\r\n {len(EVIL)}", body=EVIL), BAD),
    ("CL in wide digits", cl("\uff14\uff15"), BAD),
]

CHUNKS = [
    ("a chunk holds a request", chunks(f"{len(EVIL):x}\r\n{EVIL}\r\n0\r\n\r\n"), ONE),
    ("size with 0x", chunks("0x5\r\nhello\r\n0\r\n\r\n"), ONE),
    ("size negative", chunks("-5\r\nhello\r\n0\r\n\r\n"), ONE),
    ("size with plus", chunks("+5\r\nhello\r\n0\r\n\r\n"), ONE),
    ("size over 64 bits", chunks("10000000000000005\r\nhello\r\n0\r\n\r\n"), ONE),
    ("size of 16 F", chunks("ffffffffffffffff\r\nhello\r\n0\r\n\r\n"), ONE),
    ("size empty", chunks("\r\nhello\r\n0\r\n\r\n"), ONE),
    ("size of words", chunks("five\r\nhello\r\n0\r\n\r\n"), ONE),
    ("size with spaces behind", chunks("5   \r\nhello\r\n0\r\n\r\n"), ONE),
    ("size with a space before", chunks(" 5\r\nhello\r\n0\r\n\r\n"), ONE),
    ("size with many zeros", chunks("0" * 2_000 + "5\r\nhello\r\n0\r\n\r\n"), ONE),
    ("size less than the data", chunks("3\r\nhello\r\n0\r\n\r\n"), ONE),
    ("size more than the data", chunks("50\r\nhello\r\n0\r\n\r\n"), ONE),
    ("size ended by a bare LF", chunks("5\nhello\n0\n\n"), ONE),
    ("size ended by a bare CR", chunks("5\rhello\r0\r\r"), ONE),
    ("no line end behind the data", chunks("5\r\nhello0\r\n\r\n"), ONE),
    ("extension", chunks("5;a=b\r\nhello\r\n0\r\n\r\n"), ONE),
    ("extension in quotes with a line end", chunks('5;a="\r\n0\r\n\r\n"\r\nhello\r\n0\r\n\r\n'), ONE),
    ("extension with a bare LF", chunks("5;a\nhello\r\n0\r\n\r\n"), ONE),
    ("extension of 20 KiB", chunks("5;" + "a" * 20_480 + "\r\nhello\r\n0\r\n\r\n"), ONE),
    ("trailers", chunks("0\r\nX: y\r\n\r\n"), ONE),
    ("trailer with a length", chunks(f"0\r\nContent-Length: {len(EVIL)}\r\n\r\n"), ONE),
    ("trailer with TE", chunks("0\r\nTransfer-Encoding: chunked\r\n\r\n"), ONE),
    ("trailer with Host", chunks("0\r\nHost: evil.test\r\n\r\n"), ONE),
    ("trailer without a colon", chunks("0\r\nX\r\n\r\n"), ONE),
    ("trailers of 20 KiB", chunks("0\r\n" + "X: yyyyyyyyyyyy\r\n" * 1_280 + "\r\n"), ONE),
    ("last chunk of two zeros", chunks("00\r\n\r\n"), ONE),
    ("bad size to the API behind", chunks("zz\r\n{}\r\n0\r\n\r\n", method="POST", path="/redirections"), BAD),
    ("trailers to the API behind", chunks("2\r\n{}\r\n0\r\nAuthorization: x\r\n\r\n", method="POST", path="/redirections"), "401 closed"),
]

LINES = [
    ("no request at all", "hello\r\n\r\n", BAD),
    ("binary", "\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + "\0" * 40, BAD),
    ("HTTP/0.9", "GET /SAFE\r\n\r\n", BAD),
    ("HTTP/0.9 in words", ask(version="HTTP/0.9"), BAD),
    ("HTTP/1.2", ask(version="HTTP/1.2"), BAD),
    ("HTTP/2.0 in words", ask(version="HTTP/2.0"), BAD),
    ("HTTP/9.9", ask(version="HTTP/9.9"), BAD),
    ("http/1.1 in lower case", ask(version="http/1.1"), BAD),
    ("HTTP/1.10", ask(version="HTTP/1.10"), BAD),
    ("version missing, space kept", "GET /SAFE \r\n\r\n", BAD),
    ("two spaces behind the method", ask(method="GET "), BAD),
    ("tab behind the method", f"GET\t/SAFE HTTP/1.1\r\nHost: {HOST}\r\n\r\n", BAD),
    ("space in the target", ask(path="/SAFE /x"), BAD),
    ("space before the method", ask(method=" GET"), BAD),
    ("empty lines before", "\r\n\r\n" + ask(), KEPT),
    ("line ends of bare LF", ask().replace("\r\n", "\n"), KEPT),
    ("line ends of bare CR", ask().replace("\r\n", "\r"), BAD),
    ("bare LF inside a value", ask("X: a\nY: b"), KEPT),
    ("bare CR inside a value", ask("X: a\rY: b"), BAD),
    ("CR CR LF", ask("X: a\r"), BAD),
    ("NUL in a value", ask("X: a\0b"), BAD),
    ("NUL in a name", ask("X\0: a"), BAD),
    ("NUL in the target", ask(path="/SA\0FE"), BAD),
    ("DEL in a value", ask("X: a\x7fb"), BAD),
    ("line without a colon", ask("X"), BAD),
    ("name empty", ask(": a"), BAD),
    ("space in a name", ask("X Y: a"), BAD),
    ("space before the colon", ask("X : a"), BAD),
    ("folded value", ask("X: a\r\n b"), BAD),
    ("folded first line", f"GET /SAFE HTTP/1.1\r\n X: a\r\nHost: {HOST}\r\n\r\n", BAD),
    ("name not ASCII", ask("X\u00e9: a"), BAD),
    ("value not UTF-8", ask("X: \xff\xfe"), KEPT),
    ("brackets in a name", ask("X[]: a"), BAD),
    ("no empty line before the body", f"POST /SAFE HTTP/1.1\r\nHost: {HOST}\r\nContent-Length: 2\r\nhi\r\n\r\n", BAD),
    ("preface of HTTP/2 without frames", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + EVIL, "frames closed"),
    ("preface of HTTP/2, broken", "PRI * HTTP/2.0\r\n\r\nXX\r\n\r\n" + EVIL, "frames closed"),
]

LIMITS = [
    ("target of 2 KiB", ask(path="/SAFE?" + "a" * 2_042), KEPT),
    ("target of 2 KiB and one byte", ask(path="/SAFE?" + "a" * 2_043), "400 open"),
    ("path of 2 KiB and one byte", ask(path="/" + "a" * 2_048), "400 open"),
    ("target of 20 KiB", ask(path="/SAFE?" + "a" * 20_480), "431 closed"),
    ("target of 70 KiB", ask(path="/SAFE?" + "a" * 71_680), "431 closed"),
    ("header of 15 KiB", ask("X: " + "a" * 15_360), KEPT),
    ("header of 17 KiB", ask("X: " + "a" * 17_408), "431 closed"),
    ("header of 1 MiB", ask("X: " + "a" * 1_048_576), "431 closed"),
    ("name of 17 KiB", ask("X" * 17_408 + ": a"), "431 closed"),
    ("64 header lines", ask(*(f"X-{n}: a" for n in range(63))), KEPT),
    ("65 header lines", ask(*(f"X-{n}: a" for n in range(64))), "431 closed"),
    ("1,000 header lines", ask(*(f"X-{n}: a" for n in range(999))), "431 closed"),
    ("method of 10,000 letters", ask(method="A" * 10_000), "405 open"),
]

HOSTS = [
    ("no Host", ask(host=None), BAD),
    ("no Host in HTTP/1.0", ask(host=None, version="HTTP/1.0"), "421 closed"),
    ("Host empty", ask(host=""), "421 open"),
    ("two of them, equal", ask(f"Host: {HOST}"), BAD),
    ("two of them, ours first", ask("Host: evil.test"), BAD),
    ("two of them, ours last", ask(f"Host: {HOST}", host="evil.test"), BAD),
    ("list", ask(host=f"{HOST}, evil.test"), "421 open"),
    ("another host", ask(host="evil.test"), "421 open"),
    ("ours as a suffix", ask(host=f"evil{HOST}"), "421 open"),
    ("ours as a prefix", ask(host=f"{HOST}.evil.test"), "421 open"),
    ("ours with a dot behind", ask(host=f"{HOST}."), "421 open"),
    ("ours in upper case", ask(host=HOST.upper()), KEPT),
    ("ours with another port", ask(host=f"{HOST}:8080"), "421 open"),
    ("ours with a bad port", ask(host=f"{HOST}:80x"), "421 open"),
    ("ours behind credentials", ask(host=f"x@{HOST}"), "421 open"),
    ("ours with a path", ask(host=f"{HOST}/x"), "421 open"),
    ("ours with a tab", ask(host=f"{HOST}\tx"), "421 open"),
    ("loopback", ask(host="127.0.0.1"), "421 open"),
    ("Host folded", f"GET /SAFE HTTP/1.1\r\nHost:\r\n {HOST}\r\n\r\n", BAD),
    ("Host with a space before the colon", f"GET /SAFE HTTP/1.1\r\nHost : {HOST}\r\n\r\n", BAD),
    ("X-Forwarded-Host", ask("X-Forwarded-Host: evil.test", "Forwarded: host=evil.test"), KEPT),
    ("target absolute, ours; Host another", ask(path=f"http://{HOST}/SAFE", host="evil.test"), KEPT),
    ("target absolute, another; Host ours", ask(path="http://evil.test/SAFE"), "421 open"),
    ("target absolute with two Hosts", ask("Host: evil.test", path=f"http://{HOST}/SAFE"), BAD),
    ("target absolute without Host", ask(path=f"http://{HOST}/SAFE", host=None), BAD),
    ("target absolute with credentials", ask(path=f"http://x:y@{HOST}/SAFE"), "421 open"),
    ("target of another scheme", ask(path=f"file://{HOST}/SAFE"), KEPT),
    ("target without a scheme", ask(path=f"//{HOST}/SAFE"), "404 open"),
    ("target without a slash", ask(path="SAFE"), "421 open"),
]

METHODS = [
    ("get in lower case", ask(method="get"), "405 open"),
    ("Get", ask(method="Get"), "405 open"),
    ("TRACE", ask("X: SECRET", method="TRACE"), "405 open"),
    ("TRACK", ask(method="TRACK"), "405 open"),
    ("DEBUG", ask(method="DEBUG"), "405 open"),
    ("PROPFIND", ask(method="PROPFIND"), "405 open"),
    ("DELETE", ask(method="DELETE"), "405 open"),
    ("PUT without a body", ask(method="PUT"), "405 open"),
    ("OPTIONS *", ask(method="OPTIONS", path="*"), "404 open"),
    ("GET *", ask(path="*"), "404 open"),
    ("CONNECT", ask(method="CONNECT", path=f"{HOST}:443"), "404 open"),
    ("CONNECT elsewhere", ask(method="CONNECT", path="evil.test:25"), "421 open"),
    ("CONNECT with a path", ask(method="CONNECT", path="/SAFE"), "405 open"),
    ("X-HTTP-Method-Override", ask("X-HTTP-Method-Override: DELETE"), KEPT),
    ("method with a bad byte", ask(method="GE\u00a9T"), BAD),
    ("method empty", ask(method=""), BAD),
    ("Expect: 100-continue, no body", ask("Expect: 100-continue"), KEPT),
    ("Expect: 100-continue, length", ask("Expect: 100-continue", f"Content-Length: {len(EVIL)}", method="POST", body=EVIL), "405 open"),
    ("Expect: 100-continue, TE", ask("Expect: 100-continue", "Transfer-Encoding: chunked", body=CHUNKED_EVIL), ONE),
    ("Expect of words", ask("Expect: the-unexpected"), KEPT),
    ("Upgrade: h2c", ask("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA"), KEPT),
    ("Upgrade: h2c, preface behind", ask("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA", body="PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), "307 closed"),
    ("Upgrade: websocket", ask("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"), KEPT),
    ("Upgrade of the API behind", ask("Connection: Upgrade", "Upgrade: websocket", path="/redirections"), "401 open"),
    ("Connection names Host", ask("Connection: Host"), KEPT),
    ("Connection names the key", ask("Connection: Authorization", "Authorization: SECRET", path="/redirections"), "401 open"),
    ("Range of many parts", ask("Range: bytes=" + ",".join(f"{n}-{n}" for n in range(300))), KEPT),
]

PIPELINED = [
    ("two requests", ask() + ask(path="/OTHER"), "307 307 open"),
    ("five requests", ask() * 5, "307 307 307 307 307 open"),
    ("behind a body of the length", ask("Content-Length: 5", body="hello") + ask(path="/OTHER"), "307 307 open"),
    ("behind a chunked body", te("chunked", body="5\r\nhello\r\n0\r\n\r\n") + ask(path="/OTHER"), ONE),
    ("behind a bad request", ask("X : a") + EVIL, BAD),
    ("behind Connection: close", ask("Connection: close") + EVIL, ONE),
    ("behind HTTP/1.0", ask(version="HTTP/1.0") + EVIL, ONE),
    ("behind a HEAD", ask(method="HEAD") + ask(path="/OTHER"), "307 307 open"),
    ("behind a refused method", ask(method="PUT") + ask(path="/OTHER"), "405 307 open"),
]

PATHS = [
    ("empty query", ask(path="/SAFE?"), KEPT),
    ("two slashes", ask(path="//SAFE"), "404 open"),
    ("slash behind", ask(path="/SAFE/"), "404 open"),
    ("dot segments", ask(path="/x/../SAFE"), "404 open"),
    ("dot segments over the root", ask(path="/../../etc/passwd"), "404 open"),
    ("encoded dot segments", ask(path="/%2e%2e/%2e%2e/etc/passwd"), "404 open"),
    ("encoded slash", ask(path="/x%2f..%2fSAFE"), "404 open"),
    ("encoded letters", ask(path="/%53AFE"), "404 open"),
    ("encoded twice", ask(path="/%2553AFE"), "404 open"),
    ("backslash", ask(path="/..\\SAFE"), "404 open"),
    ("encoded NUL", ask(path="/SAFE%00"), "404 open"),
    ("encoded NUL before a suffix", ask(path="/SAFE%00.png"), "404 open"),
    ("encoded line end", ask(path="/SAFE%0d%0aX-Evil:1"), "404 open"),
    ("percent with nothing", ask(path="/SAFE%"), "404 open"),
    ("percent with rubbish", ask(path="/SAFE%zz"), "404 open"),
    ("overlong UTF-8", ask(path="/%c0%ae%c0%ae/SAFE"), "404 open"),
    ("bytes over ASCII", ask(path="/SAF\xc9"), BAD),
    ("semicolon", ask(path="/SAFE;x=1"), "404 open"),
    ("fragment", ask(path="/SAFE#x"), KEPT),
    ("question marks", ask(path="/SAFE???"), KEPT),
    ("line end in a forwarded query", ask(path="/FWD?a=%0d%0aX-Evil:%201"), KEPT),
    ("quotes in a forwarded query", ask(path='/FWD?a="<>'), BAD),
    ("API by dot segments", ask(path="/redirections/../internal/v1/edges"), "404 open"),
    ("API by encoded dot segments", ask(path="/redirections/%2e%2e/internal/v1/edges"), "404 open"),
    ("API by an encoded slash", ask(path="/redirections/..%2finternal%2fv1%2fedges"), "401 open"),
    ("internal paths", ask(path="/internal/v1/edges"), "404 open"),
    ("admin paths", ask(path="/metrics"), "404 open"),
    ("long run of slashes", ask(path="/" * 1_500), "404 open"),
]

KEYS = [
    ("forwarded query", ask(path="/FWD?access_token=SECRET"), KEPT),
    ("between others", ask(path="/FWD?a=1&access_token=SECRET&b=2"), KEPT),
    ("upper case", ask(path="/FWD?ACCESS_TOKEN=SECRET"), KEPT),
    ("encoded name", ask(path="/FWD?access%5ftoken=SECRET"), KEPT),
    ("encoded whole", ask(path="/FWD?%61%63%63%65%73%73%5f%74%6f%6b%65%6e=SECRET"), KEPT),
    ("spaces around", ask(path="/FWD?+access_token+=SECRET"), KEPT),
    ("twice", ask(path="/FWD?access_token=SECRET&access_token=SECRET"), KEPT),
    ("record by key", ask("Accept: application/json", path="/SAFE?access_token=SECRET"), "401 open"),
    ("record by header", ask("Accept: application/json", "Authorization: SECRET"), "401 open"),
]

GROUPS = {
    "framing": FRAMING, "chunks": CHUNKS, "lines": LINES, "limits": LIMITS, "hosts": HOSTS, "methods": METHODS,
    "pipelined": PIPELINED, "paths": PATHS, "keys": KEYS,
}


def cases():
    """Every case as group, name, bytes and expected verdict."""
    for group, rows in GROUPS.items():
        for name, text, expected in rows:
            # Characters of one byte stay one; the few wider ones are digits that must be refused.
            yield group, name, b"".join(encode(char) for char in text), expected


def encode(char):
    return char.encode("latin-1") if ord(char) < 256 else char.encode()
