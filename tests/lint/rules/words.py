"""One word per thing, the one the field uses: in names, comments, messages and docs."""

import re

# What is not said, as a regular expression between word boundaries, and what is said instead.
WORDS = [
    (r"artifacts?", "artefact"),
    (r"bp_order(?!ed)\w*|(?<!byte )orders(_\w+)?|\w+_orders|an order(?! (of|that|in)\b)", "job"),
    (r"(make|new|free|unlink|finish|submit)_order|order(?=->)|(?<=\*)order", "job"),
    (r"bp_tak(e|ing)\w*|bp_\w+_take_report|[Tt]he taking|a taking", "job, assemble"),
    (r"bp_recorded\w*|recorded\.[ch]", "assemble"),
    (r"\w*freez(e|es|er|ers|ing|_)\w*|\w*froze(n|_)?\w*", "snapshot, snapshotter"),
    (r"(?!zookeeper)\w*keepers?\w*|bp_kept\w*|(session|order|job)->kept|kept (rings|reports?)", "retained"),
    (r"bp_home\w*|homes|(an?|its|the|whose|each|own|unlocked|dead|session's) home(?! director)",
     "session directory"),
    (r"\w*pulses?\w*|\w*heartbeats?\w*", "sampler thread, tick"),
    (r"\w*crews?\w*|(un)?hir(e|es|ed|ing)(_\w+)?|bury|buries|buried|burying",
     "worker pool; start, stop"),
    (r"(bp_\w*)?halt(s|ed|ing)?(_\w+)?|halt\.h", "cancel token; cancel"),
    (r"(bp_\w*|is_|shut_|the_)?gates?(_\w+)?|bp_visit\w*|bp_session_visit\w*|(an?|the|each) visit",
     "entry guard"),
    (r"\w*rescue(?!r)\w*", "salvage (a damaged zip)"),
    (r"\w*spool\w*", "temporary file"),
    (r"bp_\w+_heads?|(record|message|entry|file|zip)('s)? heads?", "header"),
    (r"\w*ledgers?\w*", "manifest, manifest line"),
    (r"(first|each|one|a|of|repeated)?[ _]?sights?(_\w+)?", "occurrence"),
    (r"(tak(e|es|ing)|took) (\w+ ){0,2}back|taken back", "cancel"),
    (r"(stand|stands|standing|stood)(_| \w+ | )back", "yield to the host"),
    (r"guests?(?!/)(?!`)", "library in a host"),
    (r"(lie|lies|lay) (in|at|on|beside|behind|under)", "be, be stored"),
    (r"rooms|house", "folder"),
]
# Names of keys and of options are a contract, whatever they are called. In a document they are in
# quotes, in backquotes or behind jq's dot.
CONTRACT = re.compile(r'"[\w.-]+"|`[^`\n]*`|(?<=[\s|(])\.[a-z_.]+')
FOLDERS = ("src", "include", "docs")
BINARY = (".png", ".zip", ".svg")

_PATTERNS = [(re.compile(rf"(?<![\w-])(?:{words})(?!\w)", re.IGNORECASE if words.islower() else 0),
              instead) for words, instead in WORDS]


def _hits(text, is_document):
    """Yields (line number, word, what to say)."""
    for number, line in enumerate(text.split("\n"), 1):
        line = CONTRACT.sub(" - ", line) if is_document else re.sub(r'"[\w.-]+"', '""', line)
        for pattern, instead in _PATTERNS:
            for match in pattern.finditer(line):
                yield number, match.group(0).strip(), instead


def _files(tree):
    for path in tree.paths:
        if (path == "README.md" or path.startswith(tuple(f"{name}/" for name in FOLDERS))) and \
                not path.endswith(BINARY):
            yield path


def check(tree):
    for path in _files(tree):
        # A name of a file has no blanks: its parts are words of their own.
        for _, word, instead in _hits(re.sub(r"[/.-]", " ", path), False):
            yield f'{path}: the file\'s name has "{word}", we say "{instead}"'
        # Words that belong together, and are on two lines, are looked at on the first.
        text = re.sub(r"(?<=\w)\n([ *]*)((?:back|director\w+)\b)", r" \2\n\1", tree.text(path))
        for line, word, instead in _hits(text, not path.endswith((".c", ".h"))):
            yield f'{path}:{line}: "{word}", we say "{instead}"'


SAMPLES = """an order; bp_order_new(); orders_mutex; live_orders; make_order(); order->kind;
bp_taking; bp_recorded_open; freezer; may_freeze; frozen; keeper; bp_kept_new; session->kept; bp_home_open;
a home; bp_pulse; pulse; heartbeat; crew; hired; bury; bp_halt; halt; gate; bp_visit;
bp_rescue; bp_spool_open; spools; bp_traffic_head; ledger; first sight; sights; take it back;
taken back; stands back; a guest; lies in; rooms""".replace("\n", " ").split("; ")
BAD = [{"src/base/a.c": f"/* {sample} */\n"} for sample in SAMPLES]
BAD += [{"README.md": "It is a guest.\n"}, {"docs/a.md": "The ledger says so.\n"},
        {"docs/man/a.1": "a crew\n"}, {"include/bugpack/a.h": "/* at each pulse */\n"},
        {"src/probe/pulse.c": "int x;\n"}, {"src/base/a.c": 'say("the ledger is full");\n'}]
GOOD = [{
    "src/base/a.c": "/* in both byte orders, in an order that is kept; in order to keep the order;\n"
                    " * memory_order_relaxed; in_order; $HOME; the home\n"
                    " * directory; kept as it is; the head of a ring; a surrogate; investigate */\n"
                    'bp_recorder_new(getenv("HOME")); add("sights", 1);\n',
    "docs/a.md": 'The key `sights` is kept: `"sights": 4`.\n| .sights | 3 |\n',
    "README.md": "Records are kept in order. The order of entries.\n",
    "tests/unit/a.c": "/* the ledger */\n",
}]
