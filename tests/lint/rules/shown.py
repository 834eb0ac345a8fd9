"""A page links to each file of its folder: docs/FLEET.md to those in docs/fleet."""


def check(tree):
    for page in tree.select("docs", suffixes=(".md",)):
        text = tree.text(page)
        for path in tree.paths:
            if path.startswith(page[:-len(".md")].lower() + "/") and \
                    f"]({path[len('docs/'):]})" not in text:
                yield f"{page} has no link to {path}"


BAD = [
    {"docs/A.md": "", "docs/a/b.sql": "SELECT 1\n"},
    {"docs/A.md": "[b](a/b.sql)\n", "docs/a/c/b.sql": "SELECT 1\n"},
]
GOOD = [{
    "docs/A.md": "See [b](a/b.sql).\n",
    "docs/a/b.sql": "SELECT 1\n",
    "docs/other/c.sql": "SELECT 2\n",
}]
