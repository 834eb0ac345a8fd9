"""Each file in a folder of docs is linked by a page: man pages and schemas have lists of their own."""


def check(tree):
    pages = "".join(tree.text(page) for page in tree.select("docs", suffixes=(".md",)))
    for path in tree.paths:
        folder = path.split("/")[1] if path.startswith("docs/") and path.count("/") > 1 else None
        if folder not in (None, "man", "schema") and f"]({path[len('docs/'):]})" not in pages:
            yield f"no page of docs has a link to {path}"


BAD = [
    {"docs/A.md": "", "docs/a/b.sql": "SELECT 1\n"},
    {"docs/A.md": "[b](a/b.sql)\n", "docs/a/c/b.sql": "SELECT 1\n"},
]
GOOD = [{
    "docs/A.md": "See [b](other/b.sql).\n",
    "docs/other/b.sql": "SELECT 1\n",
    "docs/man/c.1": ".Dd\n",
    "docs/picture.png": "",
}]
