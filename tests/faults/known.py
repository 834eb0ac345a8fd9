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


KNOWN: list[Known] = []
