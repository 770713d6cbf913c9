"""An authenticator app: reads lines with seconds since 1970 and an otpauth URL, and answers each with the code."""

import sys

import pyotp

for line in sys.stdin:
    at, url = line.split(maxsplit=1)
    app = pyotp.parse_uri(url.strip())
    print(app.at(int(at)), app.name, app.issuer, sep="\t", flush=True)
