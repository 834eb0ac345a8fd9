"""Files and functions that can be read in one go."""

from tree import without_comments

FILE_AIM, FILE_MAX = 600, 800
FUNCTION_AIM, FUNCTION_MAX = 50, 80


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
        text = tree.text(path)
        lines = text.count("\n")
        if lines > FILE_MAX:
            yield f"{path}: {lines} lines, the limit is {FILE_MAX}"
        elif lines > FILE_AIM:
            print(f"note: {path}: {lines} lines, we aim at {FILE_AIM}")
        for line, length in functions(without_comments(text, keep_strings=False)):
            if length > FUNCTION_MAX:
                yield f"{path}:{line}: a function of {length} lines, the limit is {FUNCTION_MAX}"
            elif length > FUNCTION_AIM:
                print(f"note: {path}:{line}: a function of {length} lines, we aim at {FUNCTION_AIM}")


BAD = [
    {"src/base/a.c": "int x;\n" * (FILE_MAX + 1)},
    {"tests/unit/a.c": "int x;\n" * (FILE_MAX + 1)},
    {"src/base/a.c": "int f(void) {\n" + "    x();\n" * (FUNCTION_MAX - 1) + "}\n"},
    {"tests/unit/a.c": "int f(void) {\n" + "    x();\n" * (FUNCTION_MAX - 1) + "}\n"},
    {"src/base/a.c": "int f(int a,\n      int b) {\n" + "    x();\n" * FUNCTION_MAX + "}\n"},
]
GOOD = [{
    "src/base/a.c": "int x;\n" * FILE_AIM,
    "src/base/b.c": ("int f(void) {\n" + "    x();\n" * (FUNCTION_AIM - 2) + "}\n") * 4,
    "src/base/c.c": "static int table[] = {\n" + "    1,\n" * 200 + "};\n",
}]
