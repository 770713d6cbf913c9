"""What TLS the servers speak, told by sslyze."""

import json
import pathlib
import subprocess
import sys
import tempfile

from servers import HOST

OLD = {"ssl_2_0": "SSL 2", "ssl_3_0": "SSL 3", "tls_1_0": "TLS 1.0", "tls_1_1": "TLS 1.1"}

SCANS = [
    "sslv2", "sslv3", "tlsv1", "tlsv1_1", "tlsv1_2", "tlsv1_3", "compression", "early_data", "openssl_ccs", "heartbleed",
    "robot", "reneg", "elliptic_curves",
]


def attack(targets, report, _long):
    for target in targets:
        for name, got, expected in verdicts(scan(target.tls)):
            report.add("TLS", name, target.name, got, expected)


def scan(port):
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "result.json"
        command = [sys.executable, "-m", "sslyze", f"--json_out={out}", "--quiet", f"--sni={HOST}"]
        # It shall tell what is, not compare it with what others want.
        command += ["--mozilla_config=disable", *(f"--{name}" for name in SCANS), f"127.0.0.1:{port}"]
        done = subprocess.run(command, capture_output=True, text=True)
        result = json.loads(out.read_text())["server_scan_results"][0]
    if result["scan_status"] != "COMPLETED":
        raise RuntimeError(f"sslyze: {result['connectivity_error_trace']}\n{done.stderr}")
    return {name: part["result"] for name, part in result["scan_result"].items() if part and part["result"]}


def verdicts(told):
    """Each verdict as name, what was seen, what ours must be."""
    suites = {
        name.removesuffix("_cipher_suites"): sorted(suite["cipher_suite"]["name"] for suite in part["accepted_cipher_suites"])
        for name, part in told.items() if name.endswith('_cipher_suites')
    }
    for version, name in OLD.items():
        yield name, f"{len(suites[version])} suites" if suites[version] else "refused", "refused"
    for version, name in (("tls_1_2", "TLS 1.2"), ("tls_1_3", "TLS 1.3")):
        weak = [suite for suite in suites[version] if not is_strong(suite)]
        yield name, (f"{len(suites[version])} suites" if suites[version] else "refused"), "3 suites"
        yield f"{name}, weak suites", f"{len(weak)}, as {weak[0]}" if weak else "none", "none"
    yield "compression", "yes" if told["tls_compression"]["supports_compression"] else "no", "no"
    renegotiation = told["session_renegotiation"]
    yield "renegotiation by the client", "yes" if renegotiation["is_vulnerable_to_client_renegotiation_dos"] else "no", "no"
    yield "Heartbleed", "yes" if told["heartbleed"]["is_vulnerable_to_heartbleed"] else "no", "no"
    yield "CCS injection", "yes" if told["openssl_ccs_injection"]["is_vulnerable_to_ccs_injection"] else "no", "no"
    yield "ROBOT", told["robot"]["robot_result"], ("NOT_VULNERABLE_NO_ORACLE", "NOT_VULNERABLE_RSA_NOT_SUPPORTED")
    yield "early data", "yes" if told["tls_1_3_early_data"]["supports_early_data"] else "no", "no"
    curves = told["elliptic_curves"]["supported_curves"] or []
    small = sorted(curve["name"] for curve in curves if curve["openssl_nid"] and weaker(curve["name"]))
    yield "curves under 250 bits", ", ".join(small) or "none", "none"


def is_strong(suite):
    """Forward secrecy, and a cipher that authenticates: all of TLS 1.3, and half of TLS 1.2."""
    is_13 = not suite.startswith(("TLS_RSA", "TLS_ECDHE", "TLS_DHE", "TLS_DH", "TLS_ECDH"))
    return is_13 or ("ECDHE" in suite and ("GCM" in suite or "POLY1305" in suite))


def weaker(curve):
    digits = "".join(char for char in curve if char.isdigit())[:3]
    return curve not in ("X25519", "X448") and bool(digits) and int(digits) < 250
