/*
 * The key that is taken out of what a terminal sends.
 */
#include "run/keyboard.h"
#include "unit/unit.h"

static bp_hotkey key;
static char out[256];
static size_t out_bytes;

static void use(const char *name) {
    cr_assert(bp_hotkey_parse(name, &key), "%s", name);
}

/* Feeds a text; the rest of it is then in `out`. */
static size_t feed(const char *typed) {
    memset(out, 0, sizeof out);
    return bp_hotkey_filter(&key, typed, strlen(typed), out, &out_bytes);
}

Test(run_hotkey, is_taken_out_of_what_is_around_it) {
    static const struct {
        const char *what, *name, *typed;
        size_t press_count;
        const char *rest;
    } rows[] = {{"F12", "F12", "ab\033[24~cd", 1, "abcd"},
                {"each press", "f12", "\033[24~\033[24~x\033[24;1~", 3, "x"},
                {"other keys", "F12", "\033[23~\033[24;2~\033OS\033[A\033[200~x\033[201~", 0,
                 "\033[23~\033[24;2~\033OS\033[A\033[200~x\033[201~"},
                {"an escape before the key", "F12", "\033\033[24~", 1, "\033"},
                {"F1 of xterm, rxvt and the console", "F1", "\033OP\033[11~\033[[A", 3, ""},
                {"a control key", "Ctrl-G", "a\007b\033[103;5u", 2, "ab"},
                {"none", "none", "\033[24~\033", 0, "\033[24~\033"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        use(rows[i].name);
        cr_expect(eq(sz, feed(rows[i].typed), rows[i].press_count), "%s", rows[i].what);
        cr_expect(eq(str, out, (char *)rows[i].rest), "%s", rows[i].what);
        cr_expect(eq(sz, key.held_bytes, 0), "%s", rows[i].what);
    }
}

Test(run_hotkey, a_key_in_pieces_of_one_byte_is_found) {
    use("F12");
    const char *sequence = "\033[24~";
    for (size_t i = 0; i < 4; i++) {
        char byte[2] = {sequence[i], '\0'};
        cr_expect(eq(sz, feed(byte), 0));
        cr_expect(eq(sz, out_bytes, 0));
    }
    cr_expect(eq(sz, feed("~"), 1));
    cr_expect(eq(sz, out_bytes, 0));
}

Test(run_hotkey, a_lone_escape_is_let_go_when_nothing_follows) {
    use("F12");
    cr_expect(eq(sz, feed("x\033"), 0));
    cr_expect(eq(str, out, "x"));
    cr_assert(eq(sz, key.held_bytes, 1));
    cr_expect(eq(sz, bp_hotkey_give_up(&key, out), 1));
    cr_expect(out[0] == '\033');
    cr_expect(eq(sz, key.held_bytes, 0));
}

Test(run_hotkey, nul_bytes_pass) {
    use("F12");
    size_t press_count = bp_hotkey_filter(&key, "\0\033[\0x", 5, out, &out_bytes);
    cr_expect(eq(sz, press_count, 0));
    cr_assert(eq(sz, out_bytes, 5));
    cr_expect(memcmp(out, "\0\033[\0x", 5) == 0);
}

Test(run_hotkey, refuses_other_names_and_leaves_the_key_alone) {
    static const char *const bad[] = {"",       "F0",     "F13",    "F1 ",     "12",    "Ctrl-",
                                      "Ctrl-1", "Ctrl-I", "Ctrl+m", "Ctrl-ab", "Alt-A", "NONE "};
    use("F12");
    bp_hotkey before = key;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect(not(bp_hotkey_parse(bad[i], &key)), "%s", bad[i]);
    }
    cr_expect(memcmp(&before, &key, sizeof key) == 0);
}
