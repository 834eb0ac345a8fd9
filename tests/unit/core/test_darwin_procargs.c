/*
 * Arguments out of what KERN_PROCARGS2 copies, which the process itself may have written.
 */
#include "platform/darwin/convert.h"
#include "unit/unit.h"

/* The arguments with '|' for each NUL; "?" when they could not be found. To be freed. */
static char *parse(const char *memory, size_t bytes) {
    /* A copy without a byte to spare, so that a sanitizer sees a step too far. */
    char *copy = malloc(bytes > 0 ? bytes : 1);
    memcpy(copy, memory, bytes);
    const char *arguments;
    size_t argument_bytes;
    char *text = calloc(1, bytes + 2);
    if (bp_darwin_parse_procargs(copy, bytes, &arguments, &argument_bytes)) {
        memcpy(text, arguments, argument_bytes);
        for (size_t i = 0; i < argument_bytes; i++) {
            text[i] = text[i] == '\0' ? '|' : text[i];
        }
    } else {
        text[0] = '?';
    }
    free(copy);
    return text;
}

#define EXPECT(wanted, memory)                                                                     \
    do {                                                                                           \
        char *got = parse(memory, sizeof(memory) - 1);                                             \
        cr_expect(eq(str, got, wanted));                                                           \
        free(got);                                                                                 \
    } while (0)

Test(procargs, finds_the_arguments_behind_the_padded_path) {
    EXPECT("v|--full|", "\2\0\0\0/bin/v\0\0v\0--full\0HOME=/x\0");
    EXPECT("v|", "\1\0\0\0/bin/vw\0v\0HOME=/x\0"); /* no padding needed */
}

Test(procargs, never_shows_the_environment_for_arguments_that_are_empty) {
    EXPECT("|x|", "\2\0\0\0/bin/v\0\0\0x\0SECRET=1\0");
    EXPECT("|", "\1\0\0\0/bin/v\0\0\0SECRET=1\0");
    EXPECT("a||b|", "\3\0\0\0/bin/v\0\0a\0\0b\0SECRET=1\0");
    EXPECT("", "\0\0\0\0/bin/v\0\0SECRET=1\0");
}

Test(procargs, takes_what_is_there_when_the_copy_was_cut) {
    EXPECT("v|--fu", "\2\0\0\0/bin/v\0\0v\0--fu");
    EXPECT("", "\2\0\0\0/bin/v\0");
    EXPECT("v", "\177\0\0\0/bin/v\0\0v");
}

Test(procargs, refuses_what_has_no_path_or_no_sense) {
    EXPECT("?", "");
    EXPECT("?", "\1\0\0");
    EXPECT("?", "\1\0\0\0");
    EXPECT("?", "\1\0\0\0/bin/v");
    EXPECT("?", "\377\377\377\377/bin/v\0\0v\0");
}

Test(procargs, no_piece_of_a_real_copy_reads_outside_of_it) {
    static const char whole[] = "\3\0\0\0/Applications/V.app/v\0\0\0\0v\0\0--a\0SECRET=1\0";
    for (size_t bytes = 0; bytes <= sizeof whole; bytes++) {
        CLEANUP(free_memory) char *got = parse(whole, bytes);
        cr_expect(eq(ptr, strstr(got, "SECRET"), NULL));
    }
}
