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


_LOST = "^(status|complete|lost)"  # never a signal, a hang, a torn zip or litter

KNOWN = [
    Known("^[^/]+/(capture-host|capture|heap|sample)/", _LOST,
          "a failure to read is told as absence"),
    Known("^(allocations|system_calls)/die/", _LOST, "a ring in memory is not told at once"),
    Known("^meddling/.*closed", "the host's own", "descriptors are written without a check"),
]
