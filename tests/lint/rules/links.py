"""A document or comment that names one of our files names one that exists."""

import os
import re

from tree import lines_matching

LINK = r"\]\(([^)\s]+)\)"
# A path of ours in prose or in a comment; not a pattern, not a part of a longer path, and not a file
# of another project, as in include/linux/sched.h.
MENTION = r"(?<![\w./<${*-])((?:docs|src|include/bugpack|tests|fixtures)/[\w./+-]*\w)(?![\w<{*/$])"
MENTIONED_ENDINGS = (".md", ".c", ".h", ".json", ".mjs", ".py", ".txt")


def _exists(tree, base, target):
    path = os.path.normpath(os.path.join(base, target))
    return path in tree.paths or any(other.startswith(path + "/") for other in tree.paths)


def _prose(tree, path):
    return re.sub(r"```.*?```", lambda block: "\n" * block.group(0).count("\n"), tree.text(path),
                  flags=re.DOTALL)


def _anchors(text):
    """As GitHub names its headings: no punctuation, and a hyphen for each space."""
    for heading in re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE):
        yield re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def check(tree):
    for path in tree.select("docs", suffixes=(".md",)) + ["README.md"] * (
            "README.md" in tree.paths):
        for line, match in lines_matching(_prose(tree, path), LINK):
            target, _, anchor = match.group(1).partition("#")
            if re.match(r"[a-z]+:", match.group(1)):
                continue
            if target and not _exists(tree, os.path.dirname(path), target):
                yield f"{path}:{line}: the link to {target} leads nowhere"
                continue
            page = os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path
            if anchor and page.endswith(".md") and anchor not in _anchors(_prose(tree, page)):
                yield f"{path}:{line}: {page} has no heading #{anchor}"
    for path in tree.select("docs", "src", "include", suffixes=(".md", ".c", ".h")) + [
            "README.md"] * ("README.md" in tree.paths):
        for line, match in lines_matching(tree.text(path), MENTION):
            target = match.group(1)
            if target.endswith(MENTIONED_ENDINGS) and not _exists(tree, "", target):
                yield f"{path}:{line}: there is no {target}"


BAD = [
    {"docs/a.md": "See [this](missing.md).\n"},
    {"README.md": "See [this](docs/missing.md#part).\n"},
    {"docs/a.md": "# Here\n[that](#there)\n"},
    {"README.md": "[that](docs/a.md#there)\n", "docs/a.md": "# Here\n```\n# There\n```\n"},
    {"docs/a.md": "See `src/core/base/missing.c`.\n"},
    {"src/core/base/a.h": "/* docs/MISSING.md says more */\n"},
]
GOOD = [{
    "README.md": "# Here\n[a](docs/a.md#a-word-run) [b](docs/) [c](https://example.org/x#y) [d](#here)\n",
    "docs/a.md": "## A word: `run`\n[up](../README.md) and `src/core/base/a.h`, src/*/x.c, src/<room>/x.c\n",
    "src/core/base/a.h": '/* docs/a.md, include/linux/sched.h */\n#include "base/b.h"\n',
}]
