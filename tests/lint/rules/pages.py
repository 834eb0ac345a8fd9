"""Pages can be read in a terminal: no line of prose over 120 columns, no cell of a table over 40 words."""

import re

COLUMNS = 120
WORDS = 40


def check(tree):
    for path in tree.paths:
        if not path.endswith(".md") or path.startswith("fixtures/"):
            continue
        is_sample = False
        for number, line in enumerate(tree.text(path).splitlines(), 1):
            if line.lstrip().startswith("```"):
                is_sample = not is_sample
            elif line.startswith("|"):
                longest = max(len(cell.split()) for cell in re.split(r"(?<!\\)\|", line))
                if longest > WORDS:
                    yield f"{path}:{number}: a cell of {longest} words; at most {WORDS}"
            elif not is_sample and len(line) > COLUMNS and not line.startswith("!["):
                yield f"{path}:{number}: {len(line)} columns; at most {COLUMNS}"


BAD = [{"docs/a.md": "a" * 121 + "\n"}, {"src/core/README.md": "| a | " + "word " * 41 + "|\n"}]
GOOD = [{"docs/a.md": "| " + "word " * 40 + "| " + "word " * 40 + "|\n```\n" + "a" * 200 + "\n```\n"}]
