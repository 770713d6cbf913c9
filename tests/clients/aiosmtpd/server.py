"""A mail server: aiosmtpd, with one user. It prints its port, and each mail that it takes as a line of JSON.

server.py PORT none|starttls|tls [CERTIFICATE KEY]
"""

import asyncio
import email
import email.policy
import json
import ssl
import sys

from aiosmtpd.smtp import SMTP, AuthResult

USER, PASSWORD = b"waymark", b"a p@ssword/of mail"


def authenticate(server, session, envelope, mechanism, data):
    return AuthResult(success=(data.login, data.password) == (USER, PASSWORD))


class Mailbox:
    async def handle_RCPT(self, server, session, envelope, address, options):
        if address.startswith("nobody@"):
            return f"550 5.1.1 <{address}> is nobody's"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        mail = email.message_from_bytes(envelope.content, policy=email.policy.default)
        told = {
            "from": envelope.mail_from,
            "to": envelope.rcpt_tos,
            "subject": mail["subject"],
            "id": mail["message-id"],
            "auto": mail["auto-submitted"],
            "text": mail.get_content(),
            "tls": session.ssl is not None or MODE == "tls",
        }
        print(json.dumps(told), flush=True)
        return "250 OK"


async def main():
    context = None
    if MODE != "none":
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[3], sys.argv[4])

    def session():
        starttls = context if MODE == "starttls" else None
        return SMTP(
            Mailbox(),
            tls_context=starttls,
            require_starttls=starttls is not None,
            authenticator=authenticate,
            auth_required=True,
            auth_require_tls=MODE == "starttls",
            enable_SMTPUTF8=True,
        )

    loop = asyncio.get_running_loop()
    implicit = context if MODE == "tls" else None
    server = await loop.create_server(session, "127.0.0.1", int(sys.argv[1]), ssl=implicit)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


MODE = sys.argv[2]
asyncio.run(main())
