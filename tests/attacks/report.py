"""Verdicts of all servers in one table, and what is wrong with ours."""

OURS = "waymark"


class Report:
    def __init__(self):
        self.rows, self.expected, self.costs, self.names, self.count = {}, {}, {}, [], 0

    def add(self, group, name, server, got, expected):
        """Notes a verdict; `expected` is what waymark must answer: a text, or several."""
        self.rows.setdefault((group, name), {})[server] = got
        self.expected[group, name] = (expected,) if isinstance(expected, str) else tuple(expected)
        if server not in self.names:
            self.names.append(server)
        self.count += server == OURS

    def take(self, other):
        """Takes over the verdicts of another report."""
        for (group, name), verdicts in other.rows.items():
            for server, got in verdicts.items():
                self.add(group, name, server, got, other.expected[group, name])

    def cost(self, suite, server, memory, steady):
        """Notes what a suite cost a server: growth of memory, and another client's p99."""
        self.costs[suite, server] = memory, *steady

    def faults(self, memory, ratio):
        """What is wrong with ours: verdicts, memory, failures of the other client, and its p99 if asked."""
        found = []
        for (group, name), verdicts in self.rows.items():
            if OURS in verdicts and not fits(verdicts[OURS], self.expected[group, name]):
                wanted = " or ".join(self.expected[group, name][:3])
                found.append(f"{group}: {name}: {verdicts[OURS]!r}, not {wanted!r}")
        for (suite, server), (grown, before, during, failures) in self.costs.items():
            if server != OURS:
                continue
            if grown > memory:
                found.append(f"{suite}: memory grew by {grown >> 20} MiB")
            if failures:
                found.append(f"{suite}: {len(failures)} failures of another client, the first {failures[0][1]}")
            if ratio and during > ratio * before:
                found.append(f"{suite}: another client's p99 grew from {before * 1e3:.2f} to {during * 1e3:.2f} ms")
        return found

    def show(self, long):
        """Prints the tables; in the short form only what each suite cost."""
        if long:
            table(["group", "case"] + self.names, [
                [group, name] + [verdicts.get(server, "-") for server in self.names]
                for (group, name), verdicts in self.rows.items()
            ])
            table(["group", "cases"] + [f"{server}: refused / answered / second" for server in self.names], self.sums())
        table(["suite", "server", "memory growth, MiB", "p99 before, ms", "p99 during, ms", "ratio", "failures"], [
            [suite, server, f"{grown / (1 << 20):.1f}", f"{before * 1e3:.2f}", f"{during * 1e3:.2f}",
             f"{during / before:.2f}" if before else "-", len(failures)]
            for (suite, server), (grown, before, during, failures) in self.costs.items()
        ])

    def sums(self):
        """For each group and server: requests refused, answered, and those with an answer to EVIL."""
        groups = {}
        for (group, _), verdicts in self.rows.items():
            for server, got in verdicts.items():
                counts = groups.setdefault(group, {}).setdefault(server, [0, 0, 0])
                counts[2 if "SECOND" in got else 1 if got.startswith(("2", "3")) else 0] += 1
        for group, of in groups.items():
            cases = max(sum(counts) for counts in of.values())
            yield [group, cases] + ["{} / {} / {}".format(*of.get(server, "---")) for server in self.names]


def fits(got, expected):
    # What is under way to a server that closes makes a reset, and that may overtake what it said last.
    return got in expected or (got == "closed" and any(text.startswith("GOAWAY") for text in expected))


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" * len(head))
    for row in rows:
        print("| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |")
    print(flush=True)
