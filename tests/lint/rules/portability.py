"""What belongs to one system, or to one library, stays in the room that is there for it, and no
`#else` silently means one processor."""

import re

from tree import lines_matching, without_comments

PROCESSOR = r"\b__(x86_64|amd64|i386|aarch64|arm|riscv|powerpc64|s390x)__\b"

# What is matched, where it may stand, and what to call it.
OWNED = [
    (r"\b(__linux__|__linux|__APPLE__|__MACH__|__FreeBSD__|_WIN32)\b",
     ("src/core/platform/", "src/probe/"), "the system macro"),
    (r"#[ \t]*include[ \t]*<((?:linux|mach|asm)/[^>]*|libproc\.h|sys/(?:ptrace|prctl|inotify)\.h)>",
     ("src/core/platform/", "src/probe/"), "the system header"),
    (r'#[ \t]*include[ \t]*[<"]((?:cjson/)?cJSON(?:_Utils)?\.h)[>"]', ("src/core/json/",), "cJSON's"),
    (r'#[ \t]*include[ \t]*[<"](zip\.h|zipconf\.h|zlib\.h|zconf\.h|isa-l/[a-z_]*\.h)[>"]', ("src/core/archive/",),
     "libzip's, zlib's or ISA-L's"),
    (r'#[ \t]*include[ \t]*[<"](png\.h|pngconf\.h|pnglibconf\.h)[>"]', ("src/core/image/",),
     "libpng's"),
]


def check(tree):
    for path in tree.select("src", "include"):
        text = without_comments(tree.text(path), keep_strings=True)
        for pattern, homes, name in OWNED:
            if path.startswith(homes):
                continue
            for line, match in lines_matching(text, pattern):
                where = " or ".join(homes)
                yield f"{path}:{line}: {name} {match.group(1)} belongs into {where}"
        yield from processors(path, tree.text(path))


def processors(path, text):
    """An #else after processors is for the others, and says in a comment that these are unsupported."""
    chains = []
    for number, line in enumerate(text.split("\n"), 1):
        directive = re.match(r"#[ \t]*(ifdef|ifndef|if|elif|else|endif)\b", line)
        if not directive:
            continue
        if directive.group(1) in ("if", "ifdef", "ifndef"):
            chains.append(False)
        if directive.group(1) == "endif":
            chains.pop()
        elif directive.group(1) != "else":
            chains[-1] = chains[-1] or re.search(PROCESSOR, line) is not None
        elif chains[-1] and "unsupported" not in line:
            yield f"{path}:{number}: #else means a processor; name it with #elif, and say /* unsupported */"


BAD = [
    {"src/core/base/a.c": "#ifdef __linux__\n#endif\n"},
    {"include/bugpack/a.h": "#if defined(__APPLE__)\n#endif\n"},
    {"src/core/model/a.c": "#include <cjson/cJSON.h>\n"},
    {"src/core/json/a.c": "#include <zlib.h>\n"},
    {"src/record/report/a.c": "#include <zip.h>\n"},
    {"src/record/report/a.c": "#include <isa-l/crc.h>\n"},
    {"src/core/model/a.c": "#include <png.h>\n"},
    {"src/core/base/a.c": "#include <sys/prctl.h>\n"},
    {"src/core/base/a.c": "#include <linux/types.h>\n"},
    {"src/probe/a.c": "#if defined(__aarch64__)\n#ifdef X\n#endif\n#else\n#endif\n"},
    {"src/probe/a.c": "#ifdef X\n#elif defined(__x86_64__)\n#else\n#endif\n"},
]
GOOD = [{
    "src/core/platform/a.c": "#ifdef __linux__\n#include <sys/prctl.h>\n#endif\n",
    "src/core/json/a.c": "#include <cjson/cJSON.h>\n",
    "src/core/archive/a.c": "#include <zip.h>\n#include <zlib.h>\n",
    "src/core/image/a.c": "#include <png.h>\n",
    "src/record/session/a.c": '#include "image/png.h"\n',
    "src/core/base/a.c": "/* not __linux__ */\nint x;\n",
    "tests/unit/a.c": "#include <zip.h>\n",
    "src/probe/b.c": "#if defined(__x86_64__)\n#ifdef X\n#else\n#endif\n#else /* unsupported */\n#endif\n",
}]
