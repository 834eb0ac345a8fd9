"""No marks of unfinished work, and nothing that only one machine knows."""

import os
import re

from tree import lines_matching

# In pieces, so that this file does not find itself.
MARKS = r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b"
# Samples may have a home that is plainly nobody's.
MACHINE = r"(?<![\w.$}-])(/(?:home|root|work|Users)/(?!(?:someone|user|you)\b)[\w.-]+)"
TEXT = re.compile(r"\.(c|h|cpp|md|txt|cmake|in|py|sh|mjs|json|[0-9]|yml|service)$")


def check(tree):
    for path in tree.paths:
        # Recorded machines say what they said; a lock file is not ours to write.
        if path.startswith("fixtures/") or path.endswith("package-lock.json"):
            continue
        if os.path.islink(tree.full(path)):
            continue
        text = tree.text(path)
        if not TEXT.search(path) and not text.startswith("#!"):
            continue
        for pattern, name in ((MARKS, "a mark of unfinished work"),
                              (MACHINE, "a path of one machine")):
            for line, match in lines_matching(text, pattern):
                yield f"{path}:{line}: {name}: {match.group(1)}"


BAD = [
    {"src/core/base/a.c": "/* TO" "DO: all of it */\n"},
    {"docs/a.md": "Then FIX" "ME.\n"},
    {"tests/run": "#!/bin/sh\ncd /ro" "ot/project\n"},
    {"src/core/base/a.h": "/* see /ho" "me/jane/notes */\n"},
    {"src/core/base/a.h": "/* see /ho" "me/userland/notes */\n"},
]
GOOD = [{
    "tests/run": "#!/bin/sh\nmktemp -d /tmp/bugpack.XXXXXX\necho $work/root ~/.local\n",
    "docs/a.md": "Reports go to `$HOME/reports`, or /home/user/x. See src/home/x.\n",
    "fixtures/proc/a.txt": "/ho" "me/jane\n",
}]
