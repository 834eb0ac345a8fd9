"""Functions that cannot be called safely, or that there is a better one for."""

from tree import lines_matching, without_comments

UNSAFE = ("atoi|atol|atoll|atof|strtok|sprintf|vsprintf|strcpy|stpcpy|strcat|gets|localtime|gmtime"
          "|ctime|asctime|mktemp|tmpnam|tempnam|alloca")
# A shell between us and a program is one reader of hostile text more; a test may use one.
SHELL = "system|popen"


# A library may be in a process with more privileges than whoever set its environment.
ENVIRONMENT = "getenv"
ENVIRONMENT_FOLDERS = ("src/command/cli", "src/hosts", "src/core/platform")


def _calls(tree, folder, names):
    for path in tree.select(folder, suffixes=(".c", ".h", ".cpp")):
        text = without_comments(tree.text(path), keep_strings=False)
        for line, match in lines_matching(text, rf"(?<![\w.>])({names})\s*\("):
            yield f"{path}:{line}: {match.group(1)}() is banned"


def check(tree):
    yield from _calls(tree, "src", f"{UNSAFE}|{SHELL}")
    for found in _calls(tree, "src", ENVIRONMENT):
        if not found.startswith(ENVIRONMENT_FOLDERS):
            yield f"{found}: bp_machine_environment"
    yield from _calls(tree, "include", f"{UNSAFE}|{SHELL}")
    yield from _calls(tree, "tests", UNSAFE)
    for path in tree.paths:
        if path.startswith("tests/") and (path.endswith(".sh") or tree.first_line(path).startswith("#!/bin/sh")):
            for line, _ in lines_matching(tree.text(path), r"(?m)^[^#\n]*\bjq (-\w+ )*-\w*e"):
                yield f"{path}:{line}: jq -e takes empty input for success: holds, of tests/support/holds.sh"


BAD = [{"src/core/base/a.c": f"void f(void) {{ x = {name}(a); }}\n"}
       for name in f"{UNSAFE}|{SHELL}".split("|")]
BAD += [{"src/probe/a.c": 'void f(void) { x = getenv("HOME"); }\n'}]
BAD += [{"tests/unit/a.c": "int f(void) { return atoi\n(a); }\n"}]
BAD += [{"tests/cli/a.sh": "jq -e .a out || exit 1\n"}, {"tests/cli/a": "#!/bin/sh\ncat out | jq -r -e .a\n"}]
GOOD = [{
    "tests/cli/a.sh": "# not jq -e\nholds .a out\njq -r .e out\n",
    "src/core/base/a.c": 'int f(void) { return snprintf(b, 2, "atoi(1)"); }\n/* strcpy(a, b) */\n'
                    "void g(void) { gmtime_r(a, b); my_system(1); filesystem(2); }\n",
    "src/command/cli/a.c": 'int f(void) { return getenv("TERM") != NULL; }\n',
    "tests/unit/a.c": 'int f(void) { return system("true"); }\n',
}]
