"""All of src and include together has at most BUDGET lines."""

# Whoever raises it says in the commit what a user gets for how many lines.
BUDGET = 102_082


def check(tree):
    lines = sum(tree.text(path).count("\n")
                for path in tree.select("src", "include", suffixes=(".c", ".h", ".hpp")))
    if lines > BUDGET:
        yield (f"src and include have {lines} lines, the budget of tests/lint/rules/budget.py is {BUDGET}: "
               "remove some, or raise it and say in the commit what a user gets for how many lines")


BAD = [
    {"src/core/base/a.c": "\n" * (BUDGET - 1), "include/bugpack/a.h": "\n", "include/bugpack/a.hpp": "\n"},
]
GOOD = [
    {"src/core/base/a.c": "\n" * BUDGET, "src/CMakeLists.txt": "\n", "tests/unit/a.c": "\n"},
]
