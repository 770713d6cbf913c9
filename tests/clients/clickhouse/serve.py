"""ClickHouse's engine in process (chDB) behind the part of its HTTP interface that Waymark uses, until its input ends.

serve.py FOLDER PORT

Says where it listens. The data is in FOLDER, and there again after a kill. A line `BEGIN-OF-STATEMENT|WHAT` of the input
is about the next statement that begins so: `lose` does it and closes the connection without an answer, `die` ends the
process before, `hang` never answers, `passing` answers with an error that passes, `wait` does it after the line `|go`.
"""

import os
import re
import socketserver
import sys
import tempfile
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler

from chdb.session import Session

FOLDER, PORT = sys.argv[1], int(sys.argv[2])
USER, PASSWORD = "waymark", "a p@ssword/of scans"
# Of HTTP, not of a statement.
OF_HTTP = {"query", "database", "default_format", "wait_end_of_query"}
session = Session(os.path.join(FOLDER, "chdb"))
session.query("CREATE DATABASE IF NOT EXISTS waymark")
engine, faults, go = threading.Lock(), [], threading.Semaphore(0)
# The database of the statements, which the session keeps.
used = None


def run(members, body):
    """The bytes of an answer; raises what the engine raises."""
    global used
    params = {name[6:]: value for name, value in members.items() if name.startswith("param_")}
    settings = [
        f"{name}='{value}'"
        for name, value in members.items()
        if name not in OF_HTTP and not name.startswith("param_") and re.fullmatch(r"\w+", name)
    ]
    settings = " SETTINGS " + ", ".join(settings).replace("\\", "\\\\") if settings else ""
    sql = members.get("query")
    with engine, tempfile.NamedTemporaryFile(dir=FOLDER) as file:
        if sql is None:
            sql = body.decode()
            if not sql.startswith(("CREATE ", "EXPLAIN ")):
                sql += settings
        else:
            file.write(body)
            file.flush()
            table, _, form = sql.rpartition(" FORMAT ")
            sql = f"{table} FROM INFILE '{file.name}'{settings} FORMAT {form}"
        database = members.get("database", "default")
        if database != used:
            session.query(f"USE {database}")
            used = database
        return session.query(sql, members.get("default_format", "TabSeparated"), params=params).bytes()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        query = urllib.parse.urlsplit(self.path).query
        members = dict(urllib.parse.parse_qsl(query, keep_blank_values=True, strict_parsing=True))
        key = self.headers.get("X-ClickHouse-Key", "").encode("latin-1").decode()
        if (self.headers.get("X-ClickHouse-User"), key) != (USER, PASSWORD):
            return self.answer(403, b"Code: 516. DB::Exception: (AUTHENTICATION_FAILED)", 516)
        what = self.fault(members.get("query") or body.decode())
        if what == "die":
            os._exit(9)
        if what == "hang":
            threading.Event().wait()
        if what == "wait":
            go.acquire()
        if what == "passing":
            return self.answer(500, b"Code: 252. DB::Exception: (TOO_MANY_PARTS)", 252)
        try:
            found = run(members, body)
        except Exception as error:
            text = str(error)
            code = re.search(r"Code: (\d+)", text)
            return self.answer(500, text.encode(), int(code[1]) if code else 1002)
        if what == "lose":
            self.close_connection = True
            return self.connection.close()
        self.answer(200, found)

    def fault(self, sql):
        for at, (begin, what) in enumerate(faults):
            if sql.startswith(begin):
                del faults[at]
                print(f"did {what}", flush=True)
                return what
        return None

    def answer(self, status, body, code=None):
        self.send_response(status)
        if code is not None:
            self.send_header("X-ClickHouse-Exception-Code", str(code))
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address, daemon_threads, request_queue_size = True, True, 128


server = Server(("127.0.0.1", PORT), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(f"listening {server.server_address[1]}", flush=True)
for line in sys.stdin:
    begin, what = line.rstrip("\n").split("|")
    if what == "go":
        go.release()
    else:
        faults.append((begin, what))
    print("noted", flush=True)
os._exit(0)
