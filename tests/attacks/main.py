"""Attacks servers and compares their verdicts; see README.md beside this file."""

import argparse
import importlib
import os
import sys
import tempfile
import time

import servers
from report import Report
from steady import Steady

MEMORY = 64 << 20


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waymark", required=True, help="the binary")
    parser.add_argument("--long", action="store_true", help="with nginx and HAProxy, and what takes minutes")
    parser.add_argument("--suites", default="http1,http2,slow,tls", help="which suites, by commas")
    options = parser.parse_args()
    report = Report()
    # Attackers have computers of their own; here they must not take the servers' processors.
    with tempfile.TemporaryDirectory(prefix="waymark-attacks-") as folder:
        targets = []
        try:
            targets.append(servers.Waymark(folder, options.waymark))
            if options.long:
                targets += [servers.Nginx(folder), servers.HAProxy(folder)]
            os.nice(10)
            for name in options.suites.split(","):
                # Loaded only then: the suite of TLS needs more packages.
                attack = importlib.import_module(name).attack
                loads = {target.name: Steady(target) for target in targets}
                before = {target.name: target.rss() for target in targets}
                for target in targets:
                    target.forget_peak()
                begun = time.monotonic()
                attack(targets, report, options.long)
                for target in targets:
                    report.cost(name, target.name, target.peak() - before[target.name], loads[target.name].stop(begun))
        finally:
            for target in targets:
                target.stop()
    report.show(long=options.long)
    faults = report.faults(memory=MEMORY, ratio=2 if options.long else None)
    for fault in faults:
        print(f"FAILED {fault}")
    print(f"{report.count} verdicts of waymark, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
