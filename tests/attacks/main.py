"""Attacks servers and compares their verdicts; see README.md beside this file."""

import argparse
import concurrent.futures
import importlib
import multiprocessing
import os
import sys
import tempfile
import time
import traceback

import servers
from report import OURS, Report
from steady import Steady

MEMORY = 64 << 20


def attack(suite, targets, report, long):
    """Runs a suite against some servers while another client asks each of them all the time."""
    # Together, so that none of them has begun long before the attack.
    with concurrent.futures.ThreadPoolExecutor(len(targets)) as pool:
        loads = list(pool.map(lambda target: Steady(target, long), targets))
    before = [target.rss() for target in targets]
    for target in targets:
        target.forget_peak()
    begun = time.monotonic()
    found = multiprocessing.Queue()
    attacker = multiprocessing.Process(target=quietly, args=(suite, targets, long, found), daemon=True)
    attacker.start()
    report.take(found.get())
    for target, load, rss in zip(targets, loads, before):
        report.cost(suite.__name__, target.name, target.peak() - rss, load.stop(begun))


def quietly(suite, targets, long, found):
    """The attackers have computers of their own; here they get what the servers and clients leave of the processors.

    In the short form, whose times are not judged, they get a little beside other tests, too.
    """
    if long:
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))
    else:
        os.nice(10)
    report = Report()
    try:
        suite.attack(targets, report, long)
    except Exception:
        report.add(suite.__name__, "the suite itself", OURS, traceback.format_exc().replace("\n", " "), "ran to its end")
    found.put(report)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--waymark", required=True, help="the binary")
    parser.add_argument("--long", action="store_true", help="with nginx and HAProxy, and what takes minutes")
    parser.add_argument("--suites", default="http1,http2,slow,tls", help="which suites, by commas")
    parser.add_argument("--fast-redirects", default="on", choices=("on", "off"), help="off: hyper reads every request")
    options = parser.parse_args()
    report = Report()
    with tempfile.TemporaryDirectory(prefix="waymark-attacks-") as folder:
        targets = []
        try:
            targets.append(servers.Waymark(folder, options.waymark, options.fast_redirects))
            if options.long:
                targets[0].warm()
                targets += [servers.Nginx(folder), servers.HAProxy(folder)]
            for name in options.suites.split(","):
                # Loaded only then: the suite of TLS needs more packages.
                suite = importlib.import_module(name)
                # One after the other, so that each one's cost is its own; waiting costs nothing.
                for some in [targets] if name == "slow" else [[target] for target in targets]:
                    attack(suite, some, report, options.long)
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
