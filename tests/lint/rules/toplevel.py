"""The top level has its agreed entries and no other."""

AGREED = {"CMakeLists.txt", "src", "include", "tests", "fixtures", "docs", "README.md", "LICENSE"}


def check(tree):
    for entry in sorted({path.split("/")[0] for path in tree.paths}):
        if entry not in AGREED and not entry.startswith("."):
            yield f"{entry}: not among the agreed entries of the top level"


BAD = [{"Makefile": "all:\n"}, {"scripts/a": "x\n"}]
GOOD = [{"CMakeLists.txt": "\n", "src/a.c": "\n", ".ci/run": "\n", "LICENSE": "\n"}]
