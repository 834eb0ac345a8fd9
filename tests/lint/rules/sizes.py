"""Functions that can be read in one go."""

from tree import without_comments

LIMIT = 80


def functions(text):
    """Yields (first line, lines) of each function body, as clang-format lays it out."""
    start = None
    for number, line in enumerate(text.split("\n"), 1):
        if start is None and line.endswith(") {"):
            start = number
        elif start is not None and line == "}":
            yield start, number - start + 1
            start = None


def check(tree):
    for path in tree.select("src", "include", "tests"):
        for line, length in functions(without_comments(tree.text(path), keep_strings=False)):
            if length > LIMIT:
                yield f"{path}:{line}: a function of {length} lines, the limit is {LIMIT}"


BAD = [
    {"src/core/base/a.c": "int f(void) {\n" + "    x();\n" * (LIMIT - 1) + "}\n"},
    {"tests/unit/a.c": "int f(int a,\n      int b) {\n" + "    x();\n" * LIMIT + "}\n"},
]
GOOD = [{
    "src/core/base/b.c": ("int f(void) {\n" + "    x();\n" * (LIMIT - 2) + "}\n") * 4,
    "src/core/base/c.c": "static int table[] = {\n" + "    1,\n" * 200 + "};\n",
}]
