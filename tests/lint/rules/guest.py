"""The library is a guest in somebody's process: what a guest does not do."""

from tree import lines_matching, without_comments

# These are programs of their own, or parts of one that no library has.
PROGRAMS = ("src/command/cli/", "src/command/run/", "src/hosts/")
# Starts the command as a helper, whose first descriptors it sets, and holds the helper's own part.
HELPER = ("src/probe/stacks/stop_helper.c",)
# Readers, which no host links, take "-" for standard input.
READER = ("src/read/entries/report_file.c",)
# Ends the process when a rank is broken, in debug builds and those of the tests alone.
CHECKS = ("src/core/base/lock.c",)
# What a host asks for by name: bugpack_crash_handler_install.
HANDLER = ("src/core/platform/linux/crash_handler.c", "src/core/platform/linux/crash_collect.c")
HANDLER_MAY = ("sigaction", "sigprocmask")
RUDE = ("exit|_exit|_Exit|quick_exit|abort|raise|signal|sigaction|sigprocmask|atexit|pthread_atfork"
        "|fork|vfork|alarm|setlocale|uselocale|chdir|fchdir|umask|setenv|putenv|unsetenv|clearenv"
        "|setrlimit|dup2|dup3|printf|vprintf|dprintf|vdprintf|puts|putchar|perror|syslog|tzset|srand"
        "|cJSON_InitHooks|mallopt")


def check(tree):
    for path in tree.select("src"):
        if path.startswith(PROGRAMS + CHECKS + HELPER):
            continue
        text = without_comments(tree.text(path), keep_strings=False)
        for line, match in lines_matching(text, rf"(?<![\w.>])({RUDE})\s*\("):
            if path in HANDLER and match.group(1) in HANDLER_MAY:
                continue
            yield f"{path}:{line}: {match.group(1)}() changes or ends the host, or prints"
        for line, match in lines_matching(
                text, r"\b(stdout|stderr|stdin|STD(?:IN|OUT|ERR)_FILENO)\b"):
            if path not in READER or match.group(1) != "STDIN_FILENO":
                yield f"{path}:{line}: {match.group(1)} is the host's"


BAD = [{"src/core/base/a.c": f"void f(void) {{ {name}(a); }}\n"} for name in RUDE.split("|")]
BAD += [{"src/record/report/a.c": "void f(void) { fputs(a, stderr); }\n"},
        {"src/record/report/a.c": "void f(void) { write(STDERR_FILENO, a, 1); }\n"},
        {"src/record/report/a.c": "void f(void) { read(STDIN_FILENO, a, 1); }\n"}]
GOOD = [{
    "src/core/base/a.c": "void f(void) { bp_buffer_printf(b, c); snprintf(a, 1, b); at_exit(c); }\n"
                    "/* exit(1) and stderr */\n",
    "src/command/cli/a.c": "int main(void) { puts(a); exit(1); }\n",
}]
