"""A page shows each file of its folder as it is: docs/FLEET.md those in docs/fleet."""

import re


def check(tree):
    for page in tree.select("docs", suffixes=(".md",)):
        text = tree.text(page)
        blocks = re.findall(r"^```\w*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
        for path in tree.paths:
            if path.startswith(page[:-len(".md")].lower() + "/") and tree.text(path) not in blocks:
                yield f"{page} does not show {path} as it is"


BAD = [
    {"docs/A.md": "", "docs/a/b.sql": "SELECT 1\n"},
    {"docs/A.md": "```sql\nSELECT 1;\n```\n", "docs/a/c/b.sql": "SELECT 1\n"},
]
GOOD = [{
    "docs/A.md": "See\n\n```sql\nSELECT 1\n```\n\n```\nof more\n```\n",
    "docs/a/b.sql": "SELECT 1\n",
    "docs/other/c.sql": "SELECT 2\n",
}]
