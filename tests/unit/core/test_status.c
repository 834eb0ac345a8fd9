#include <errno.h>

#include "base/status.h"
#include "base/utf8.h"
#include "unit/unit.h"

Test(status, fills_the_error_and_returns_the_status) {
    cr_assert(eq(int, bp_fail(&failure, BUGPACK_ERR_INVALID, "%d is too %s", 7, "large"),
                 BUGPACK_ERR_INVALID));
    cr_assert(eq(int, failure.status, BUGPACK_ERR_INVALID));
    cr_assert(eq(int, failure.system_errno, 0));
    cr_assert(eq(str, failure.message, "7 is too large"));
}

Test(status, works_without_an_error_to_fill) {
    cr_assert(eq(int, bp_fail(NULL, BUGPACK_ERR_BUSY, "unheard"), BUGPACK_ERR_BUSY));
    cr_assert(eq(int, bp_fail_errno(NULL, EIO, "unheard"), BUGPACK_ERR_IO));
    cr_assert(eq(int, bp_fail_process_errno(NULL, ESRCH, "unheard"), BUGPACK_ERR_NO_PROCESS));
    cr_assert(eq(int, bp_fail_memory(NULL, "unheard"), BUGPACK_ERR_NO_MEMORY));
}

Test(status, names_the_thing_and_what_the_system_says) {
    (void)bp_fail_errno(&failure, ENOSPC, "cannot write \"%s\"", "/x/y.zip");
    cr_assert(eq(str, failure.message, "cannot write \"/x/y.zip\": No space left on device"));
    cr_assert(eq(int, failure.system_errno, ENOSPC));
}

Test(status, sorts_system_errors_by_what_a_host_can_do) {
    static const struct {
        int system_errno;
        bugpack_status plain, process;
    } cases[] = {
        {ENOMEM, BUGPACK_ERR_NO_MEMORY, BUGPACK_ERR_NO_MEMORY},
        {ESRCH, BUGPACK_ERR_IO, BUGPACK_ERR_NO_PROCESS},
        {ENOENT, BUGPACK_ERR_IO, BUGPACK_ERR_NO_PROCESS},
        {EACCES, BUGPACK_ERR_IO, BUGPACK_ERR_DENIED},
        {EPERM, BUGPACK_ERR_IO, BUGPACK_ERR_DENIED},
        {EIO, BUGPACK_ERR_IO, BUGPACK_ERR_IO},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        cr_assert(eq(int, bp_fail_errno(&failure, cases[i].system_errno, "x"), cases[i].plain));
        cr_assert(eq(int, failure.status, cases[i].plain));
        cr_assert(
            eq(int, bp_fail_process_errno(&failure, cases[i].system_errno, "x"), cases[i].process));
        cr_assert(eq(int, failure.system_errno, cases[i].system_errno));
    }
}

/* An error that opening an existing file should not return must not read as "there is none". */
Test(status, takes_for_an_answer_only_what_is_about_the_thing_asked_for) {
    static const int answers[] = {0,     ENOENT, ENOTDIR, ESRCH,  EACCES,
                                  EPERM, ESTALE, ELOOP,   ENOSYS, EFAULT};
    static const int troubles[] = {EMFILE, ENFILE, ENOMEM, EIO,          ENOSPC,
                                   EINTR,  EAGAIN, ENXIO,  ENAMETOOLONG, 98765};
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        cr_assert(not(bp_errno_is_trouble(answers[i])), "errno %d", answers[i]);
    }
    for (size_t i = 0; i < sizeof troubles / sizeof troubles[0]; i++) {
        cr_assert(bp_errno_is_trouble(troubles[i]), "errno %d", troubles[i]);
    }
}

Test(status, has_a_text_for_an_errno_that_nobody_knows) {
    (void)bp_fail_errno(&failure, 98765, "cannot read");
    cr_assert(ne(ptr, strstr(failure.message, "98765"), NULL));
}

Test(status, says_out_of_memory_in_a_sentence) {
    (void)bp_fail_memory(&failure, "keep the records");
    cr_assert(eq(str, failure.message, "cannot keep the records: out of memory"));
    cr_assert(eq(int, failure.status, BUGPACK_ERR_NO_MEMORY));
}

Test(status, lets_no_hostile_byte_through) {
    (void)bp_fail(&failure, BUGPACK_ERR_IO, "cannot read \"%s\"",
                  "a\033[2J\nb\x7F\xFF\xC2\x9B"
                  "c\xED\xA0\x80");
    cr_assert(eq(str, failure.message, "cannot read \"a?[2J?b????c???\""));
    cr_assert(bp_utf8_is_valid(failure.message, strlen(failure.message)));
}

Test(status, keeps_good_text_of_any_script) {
    (void)bp_fail(&failure, BUGPACK_ERR_IO, "%s", "\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x90\x9B");
    cr_assert(eq(str, failure.message, "\xC3\xA4 \xE2\x82\xAC \xF0\x9F\x90\x9B"));
}

static bool ends_with(const char *text, const char *ending) {
    size_t length = strlen(text);
    return length >= strlen(ending) && strcmp(text + length - strlen(ending), ending) == 0;
}

Test(status, cuts_a_long_sentence_into_valid_text) {
    /* Every offset of the cut within a character of three bytes. */
    for (size_t shift = 0; shift < 3; shift++) {
        char name[2 * BUGPACK_ERROR_MESSAGE_BYTES];
        memset(name, 'x', shift);
        size_t at = shift;
        for (; at + 4 < sizeof name; at += 3) {
            memcpy(name + at, "\xE2\x82\xAC", 3);
        }
        name[at] = '\0';
        (void)bp_fail_errno(&failure, ENOENT, "%s", name);
        size_t length = strlen(failure.message);
        cr_assert(lt(sz, length, BUGPACK_ERROR_MESSAGE_BYTES));
        cr_assert(gt(sz, length, BUGPACK_ERROR_MESSAGE_BYTES - 8));
        cr_assert(bp_utf8_is_valid(failure.message, length));
        cr_assert(ends_with(failure.message, "...: No such file or directory"));
    }
}

Test(status, names_every_status_differently) {
    for (int one = BUGPACK_ERR_CORRUPT - 1; one <= BUGPACK_OK; one++) {
        for (int other = one + 1; other <= BUGPACK_OK; other++) {
            cr_assert(ne(str, bugpack_status_name((bugpack_status)one),
                         bugpack_status_name((bugpack_status)other)));
        }
    }
    cr_assert(eq(str, bugpack_status_name((bugpack_status)77), "unknown status"));
}
