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


def check(tree):
    for path in tree.select("docs", suffixes=(".md",)) + ["README.md"] * (
            "README.md" in tree.paths):
        text = re.sub(r"```.*?```", lambda block: "\n" * block.group(0).count("\n"),
                      tree.text(path), flags=re.DOTALL)
        for line, match in lines_matching(text, LINK):
            target = match.group(1).split("#")[0]
            if not target or re.match(r"[a-z]+:", target):
                continue
            if not _exists(tree, os.path.dirname(path), target):
                yield f"{path}:{line}: the link to {target} leads nowhere"
    for path in tree.select("docs", "src", "include", suffixes=(".md", ".c", ".h")) + [
            "README.md"] * ("README.md" in tree.paths):
        for line, match in lines_matching(tree.text(path), MENTION):
            target = match.group(1)
            if target.endswith(MENTIONED_ENDINGS) and not _exists(tree, "", target):
                yield f"{path}:{line}: there is no {target}"


BAD = [
    {"docs/a.md": "See [this](missing.md).\n"},
    {"README.md": "See [this](docs/missing.md#part).\n"},
    {"docs/a.md": "See `src/base/missing.c`.\n"},
    {"src/base/a.h": "/* docs/MISSING.md says more */\n"},
]
GOOD = [{
    "README.md": "[a](docs/a.md#x) [b](docs/) [c](https://example.org/x) [d](#here)\n",
    "docs/a.md": "[up](../README.md) and `src/base/a.h`, src/*/x.c, src/<room>/x.c\n",
    "src/base/a.h": '/* docs/a.md, include/linux/sched.h */\n#include "base/b.h"\n',
}]
