"""Promises that are known to be broken, each with its reason. Empty when all are kept."""

import re
from dataclasses import dataclass


@dataclass
class Known:
    name: str     # pattern of the ids
    problem: str  # pattern of what the oracle says
    reason: str

    def matches(self, name, problem):
        return bool(re.search(self.name, name) and re.search(self.problem, problem))


KNOWN = [
    Known("^[^/]+/(capture|heap)/", "thread-heap.json|stdout",
          "a library that cannot be read has no counters"),
    Known("^rings/(recover|reopen)/session:", "metadata.json", "the identity has no checksum"),
    Known("^(allocations|system_calls)/reopen/", "^(status|lost)", "a recovery that cannot begin is not told"),
    Known("^meddling/.*closed", "the host's own", "seen once in five: a check and its use are two"),
    Known("^[^/]+/die/", "traffic.pcap", "a channel's ring in memory is not told"),
]
