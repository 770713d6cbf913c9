"""The servers under attack: waymark, and nginx and HAProxy set up as comparable redirectors."""

import json
import os
import pathlib
import secrets
import signal
import socket
import string
import subprocess
import threading
import time
import urllib.request

HOST = "tn.gg"
DEADLINE = 30
# At some 1.2 KB each they fill the 64 MiB that SQLite keeps of its file.
WARM_SCANS = 80_000
# Paths that every server knows, and where they lead. EVIL is asked for only inside or behind of bodies.
LINKS = {
    "/SAFE": "https://example.com/safe",
    "/OTHER": "https://example.com/other",
    "/EVIL": "https://example.com/smuggled",
    "/PROBE": "https://example.com/probe",
}


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def status_of(pid, key):
    """A number of /proc/PID/status, in bytes."""
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) * 1024
    return 0


class Server:
    """A process with a plain and a TLS listener on 127.0.0.1."""

    name = "?"

    def __init__(self, folder):
        self.folder = pathlib.Path(folder) / self.name
        self.folder.mkdir(parents=True)
        self.plain = self.tls = None
        self.process = None

    def spawn(self, command, **kwargs):
        log = open(self.folder / "log", "wb")
        self.process = subprocess.Popen(command, stderr=log, stdin=subprocess.DEVNULL, **kwargs)

    def pids(self):
        """The process and its children: workers serve, not the one that was started."""
        pids = [self.process.pid]
        for pid in pids:
            for task in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
                pids += [int(child) for child in task.read_text().split()]
        return pids

    def rss(self):
        return sum(status_of(pid, "VmRSS") for pid in self.pids())

    def peak(self):
        return sum(status_of(pid, "VmHWM") for pid in self.pids())

    def forget_peak(self):
        for pid in self.pids():
            pathlib.Path(f"/proc/{pid}/clear_refs").write_text("5")

    def wait_up(self):
        begun = time.monotonic()
        while time.monotonic() - begun < DEADLINE:
            try:
                socket.create_connection(("127.0.0.1", self.plain), 1).close()
                socket.create_connection(("127.0.0.1", self.tls), 1).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    break
                time.sleep(0.02)
        raise RuntimeError(f"{self.name} did not start:\n" + (self.folder / "log").read_text())

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(5)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Waymark(Server):
    """`waymark up` with a fresh database, links made through its API."""

    name = "waymark"

    def __init__(self, folder, binary, fast_redirects):
        super().__init__(folder)
        alphabet = string.ascii_letters + string.digits
        self.key = "".join(secrets.choice(alphabet) for _ in range(80))
        listen = {f"WAYMARK_{name}_LISTEN": "127.0.0.1:0" for name in ("API", "API_TLS", "EDGE", "EDGE_TLS", "ADMIN")}
        settings = {
            "WAYMARK_DATA_DIR": str(self.folder / "data"),
            "WAYMARK_OPERATOR_KEY": self.key,
            "WAYMARK_SHORT_DOMAINS": HOST,
            "WAYMARK_DEV_TLS": "1",
            "WAYMARK_FAST_REDIRECTS": fast_redirects,
            "RUST_LOG": "warn",
        }
        environment = {name: value for name, value in os.environ.items() if not name.startswith("WAYMARK_")}
        environment.pop("DATABASE_URL", None)
        self.spawn([binary, "up"], stdout=subprocess.PIPE, text=True, env=environment | listen | settings)
        places = {}
        for line in self.process.stdout:
            label, _, place = line.strip().rpartition(" ")
            places[label.strip()] = place
            if line.strip().startswith("Ctrl-C"):
                break
        else:
            raise RuntimeError("waymark did not start:\n" + (self.folder / "log").read_text())
        # A pipe that nobody reads would stop the process when it is full.
        threading.Thread(target=self.process.stdout.read, daemon=True).start()
        port = lambda label: int(places[label].rsplit(":", 1)[1])
        self.plain, self.tls = port("Edge"), port("Edge, TLS")
        self.api, self.admin = places["API"], places["Admin"]
        product = self.call("/products", {"name": "Bag"})["id"]
        for path, target in LINKS.items():
            self.link(product, path, target, False)
        self.link(product, "/FWD", "https://example.com/fwd", True)

    def call(self, path, body):
        headers = {"Authorization": self.key, "Content-Type": "application/json", "Accept": "application/json"}
        request = urllib.request.Request(self.api + path, json.dumps(body).encode(), headers)
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        return json.load(opener.open(request, timeout=DEADLINE))

    def link(self, product, path, target, forward):
        self.call("/redirections?wait=edges", {
            "platformId": product, "defaultRedirectUrl": target, "shortId": path[1:], "forwardQuery": forward,
        })

    def warm(self):
        """Lets the database fill its cache with scans of good clients: what grows by them is no attacker's doing."""
        ask = f"GET /SAFE HTTP/1.1\r\nHost: {HOST}\r\n\r\n".encode() * 500
        with socket.create_connection(("127.0.0.1", self.plain), DEADLINE) as sock:
            for _ in range(WARM_SCANS // 500):
                sock.sendall(ask)
                got = b""
                while got.count(b"HTTP/1.1 307") < 500:
                    piece = sock.recv(1 << 16)
                    if not piece:
                        raise RuntimeError("waymark closed while it was warmed")
                    got += piece
        begun = time.monotonic()
        while self.metric("waymark_edge_scans_shipped_total") < WARM_SCANS:
            if time.monotonic() - begun > 10 * DEADLINE:
                raise RuntimeError("the scans of the warming are not in the database")
            time.sleep(0.1)

    def metric(self, name):
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        for line in opener.open(self.admin + "/metrics", timeout=DEADLINE).read().decode().splitlines():
            if line.split(" ")[0] == name:
                return float(line.split(" ")[1])
        raise KeyError(name)


def certificate(folder):
    """A certificate for the host that signs itself; gives the paths of chain and key."""
    chain, key = folder / "cert.pem", folder / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    command += ["-subj", f"/CN={HOST}", "-addext", f"subjectAltName=DNS:{HOST}", "-days", "2"]
    subprocess.run(command + ["-keyout", key, "-out", chain], check=True, capture_output=True)
    return chain, key


class Nginx(Server):
    """nginx with Waymark's limits where it has the same."""

    name = "nginx"

    def __init__(self, folder):
        super().__init__(folder)
        self.plain, self.tls = free_port(), free_port()
        chain, key = certificate(self.folder)
        links = "\n".join(f"    {path} {target};" for path, target in LINKS.items())
        listen = f"listen 127.0.0.1:{self.plain} %s; listen 127.0.0.1:{self.tls} ssl http2 %s;"
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        temporary = " ".join(f"{kind}_temp_path {self.folder}/{kind};" for kind in kinds)
        config = self.folder / "nginx.conf"
        config.write_text(f"""
daemon off; worker_processes 2; pid {self.folder}/pid; error_log stderr crit;
worker_rlimit_nofile 8192;
events {{ worker_connections 4096; }}
http {{
  access_log off; {temporary}
  client_header_timeout 5s; client_body_timeout 5s; keepalive_timeout 60s; send_timeout 60s;
  keepalive_requests 1000000;
  large_client_header_buffers 4 16k; client_max_body_size 2m; http2_max_concurrent_streams 100;
  limit_conn_zone $binary_remote_addr zone=address:1m; limit_conn address 200;
  ssl_certificate {chain}; ssl_certificate_key {key}; ssl_protocols TLSv1.2 TLSv1.3;
  map $uri $target {{
{links}
  }}
  server {{ {listen % ("default_server", "default_server")} return 421; }}
  server {{
    {listen % ("", "")} server_name {HOST};
    location / {{ if ($target) {{ return 307 $target; }} return 404; }}
  }}
}}
""")
        self.spawn(["nginx", "-c", str(config), "-e", "stderr"], env=os.environ | {"PATH": os.environ["PATH"] + ":/usr/sbin"})
        self.wait_up()


class HAProxy(Server):
    """HAProxy with Waymark's limits where it has the same."""

    name = "haproxy"

    def __init__(self, folder):
        super().__init__(folder)
        self.plain, self.tls = free_port(), free_port()
        chain, key = certificate(self.folder)
        bundle, links = self.folder / "both.pem", self.folder / "links.map"
        bundle.write_text(chain.read_text() + key.read_text())
        links.write_text("".join(f"{path} {target}\n" for path, target in LINKS.items()))
        config = self.folder / "haproxy.cfg"
        config.write_text(f"""
global
  maxconn 4000
  nbthread 2
  tune.http.maxhdr 64
  tune.h2.max-concurrent-streams 100
  ssl-default-bind-options ssl-min-ver TLSv1.2
defaults
  mode http
  timeout connect 5s
  timeout server 30s
  timeout client 60s
  timeout http-request 5s
  timeout http-keep-alive 60s
frontend edge
  bind 127.0.0.1:{self.plain}
  bind 127.0.0.1:{self.tls} ssl crt {bundle} alpn h2,http/1.1
  stick-table type ip size 10k expire 60s store conn_cur
  tcp-request connection track-sc0 src
  tcp-request connection reject if {{ sc0_conn_cur gt 200 }}
  http-request return status 421 unless {{ req.hdr(host) -i {HOST} }}
  http-request redirect location %[path,map_str({links})] code 307 if {{ path,map_str({links}) -m found }}
  http-request return status 404
""")
        path = os.environ["PATH"] + ":/usr/sbin"
        self.spawn(["haproxy", "-db", "-f", str(config)], env=os.environ | {"PATH": path}, stdout=subprocess.DEVNULL)
        self.wait_up()
