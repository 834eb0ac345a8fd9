/*
 * bugpack_before_write: the host sees what would be written, changes it, drops it, fails or hangs.
 */
#include <bugpack/bugpack.h>

#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "support/report_reader.h"
#include "unit/taken_report.h"

enum { big_bytes = 1000000 };

TestSuite(before_write, .init = setup, .fini = teardown);

/* What the callback does with one entry. */
struct wish {
    const char *entry;
    bugpack_write_choice choice;
    bool fails, hangs;
    atomic_bool may_return;
    atomic_uint call_count, end_count;
    uint64_t seen_bytes;
    char seen[256]; /* the beginning of the entry */
    int status_inside;
    bugpack *session;
};

static bugpack_write_choice look(const bugpack_entry_piece *piece, bugpack_writer *writer,
                                 void *context) {
    struct wish *wish = context;
    if (strcmp(piece->entry, wish->entry) != 0) {
        return BUGPACK_WRITE_AS_IS;
    }
    atomic_fetch_add(&wish->call_count, 1);
    atomic_fetch_add(&wish->end_count, piece->byte_count == 0);
    if (piece->offset == 0) {
        (void)snprintf(wish->seen, sizeof wish->seen, "%.*s",
                       (int)(piece->byte_count < 200 ? piece->byte_count : 200),
                       piece->byte_count > 0 ? (const char *)piece->bytes : "");
        wish->seen_bytes = 0;
    }
    cr_expect(eq(u64, piece->offset, wish->seen_bytes));
    wish->seen_bytes += piece->byte_count;
    wish->status_inside = (int)bugpack_report(wish->session, NULL, NULL);
    while (wish->hangs && !atomic_load(&wish->may_return)) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    if (wish->fails) {
        return (bugpack_write_choice)bugpack_fail(writer, "no key for %s", piece->entry);
    }
    if (wish->choice == BUGPACK_WRITE_DROP) {
        (void)bugpack_fail(writer, "nobody may see it");
    }
    (void)bugpack_printf(writer, "%s", piece->byte_count > 0 ? "<piece>" : "<end>");
    return wish->choice;
}

static int provide_secret(bugpack_writer *writer, void *context) {
    (void)context;
    return bugpack_printf(writer, "password=hunter2hunter2\n");
}

static int provide_big(bugpack_writer *writer, void *context) {
    char line[100];
    memset(line, 'x', sizeof line);
    (void)context;
    for (unsigned i = 0; i < big_bytes / sizeof line; i++) {
        (void)bugpack_write(writer, line, sizeof line);
    }
    return 0;
}

static bugpack *open_with(struct wish *wish, uint32_t timeout_ms) {
    bugpack_options options = quick_options(&dir);
    options.provider_timeout_ms = timeout_ms;
    bugpack *session = open_session(&options);
    wish->session = session;
    cr_assert(zero(int, (int)bugpack_provide_text(session, "a.txt", provide_secret, NULL, NULL)));
    cr_assert(zero(int, (int)bugpack_provide_text(session, "big.txt", provide_big, NULL, NULL)));
    cr_assert(zero(int, (int)bugpack_before_write(session, look, wish)));
    return session;
}

static void expect_text(const char *entry, const char *text) {
    char *found = report_read(path, entry, NULL);
    cr_assert(ne(ptr, found, NULL), "%s", entry);
    cr_expect(eq(str, found, (char *)(uintptr_t)text));
    free(found);
}

Test(before_write, sees_what_would_be_written_in_pieces_and_leaves_it) {
    bugpack_report_result result;
    struct wish wish = {.entry = "a.txt"};
    bugpack *session = open_with(&wish, 60000);
    take(session, NULL, &result);
    cr_expect(eq(uint, wish.call_count, 2));
    cr_expect(eq(uint, wish.end_count, 1));
    cr_expect(ne(ptr, (void *)strstr(wish.seen, "password=REDACTED-password-"), NULL), "%s",
              wish.seen);
    cr_expect(eq(int, wish.status_inside, (int)BUGPACK_ERR_INVALID));
    expect_text("a.txt", wish.seen);
    cr_expect(report_entry_contains(path, "manifest.json", "\"before_write\": \"applied\""));
    cr_expect(not(report_entry_contains(path, "manifest.json", "changed by the host")));

    struct wish big = {.entry = "big.txt", .session = session};
    cr_assert(zero(int, (int)bugpack_before_write(session, look, &big)));
    take(session, NULL, &result);
    cr_expect(eq(u64, big.seen_bytes, big_bytes));
    cr_expect(eq(uint, big.call_count, big_bytes / 65536 + 2));
    cr_expect(eq(uint, wish.call_count, 2));

    cr_assert(zero(int, (int)bugpack_before_write(session, NULL, NULL)));
    take(session, NULL, &result);
    cr_expect(eq(uint, big.call_count, big_bytes / 65536 + 2));
    cr_expect(not(report_entry_contains(path, "manifest.json", "before_write")));
    bugpack_close(session);
}

Test(before_write, changes_an_entry_and_the_manifest_says_so) {
    bugpack_report_result result;
    struct wish wish = {.entry = "a.txt", .choice = BUGPACK_WRITE_INSTEAD};
    bugpack *session = open_with(&wish, 60000);
    take(session, NULL, &result);
    expect_text("a.txt", "<piece><end>");
    cr_expect(report_entry_contains(path, "manifest.json", "\"note\": \"changed by the host\""));
    cr_expect(zero(uint, result.missing_count));
    wish.entry = "logs.jsonl"; /* of a ring, and empty */
    take(session, NULL, &result);
    expect_text("logs.jsonl", "<end>");
    wish.entry = "manifest.json";
    wish.choice = BUGPACK_WRITE_DROP;
    atomic_store(&wish.call_count, 0);
    take(session, NULL, &result);
    cr_expect(zero(uint, wish.call_count));
    bugpack_close(session);
}

Test(before_write, drops_an_entry_which_is_not_missing) {
    bugpack_report_result result;
    struct wish wish = {.entry = "big.txt", .choice = BUGPACK_WRITE_DROP};
    bugpack *session = open_with(&wish, 60000);
    take(session, NULL, &result);
    cr_expect(zero(uint, result.missing_count));
    cr_expect(eq(uint, wish.call_count, 1)); /* the rest is not asked about */
    cr_expect(eq(ptr, report_read(path, "big.txt", NULL), NULL));
    cr_expect(report_entry_contains(path, "manifest.json", "\"status\": \"disabled\""));
    cr_expect(report_entry_contains(path, "manifest.json",
                                    "\"reason\": \"bugpack_before_write: nobody may see it\""));
    static const char *const entries[] = {"metadata.json", "runtime-metrics.json", "logs.jsonl"};
    for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
        wish.entry = entries[i];
        take(session, NULL, &result);
        cr_expect(zero(uint, result.missing_count));
        cr_expect(eq(ptr, report_read(path, entries[i], NULL), NULL));
    }
    bugpack_close(session);
}

Test(before_write, that_fails_costs_its_entry) {
    bugpack_report_result result;
    struct wish wish = {.entry = "a.txt", .fails = true};
    bugpack *session = open_with(&wish, 60000);
    take(session, NULL, &result);
    cr_expect(eq(uint, result.missing_count, 1));
    cr_expect(eq(ptr, report_read(path, "a.txt", NULL), NULL));
    char *big = report_read(path, "big.txt", NULL);
    cr_expect(ne(ptr, big, NULL));
    free(big);
    cr_expect(report_entry_contains(path, "manifest.json",
                                    "\"reason\": \"bugpack_before_write: no key for a.txt\""));
    wish = (struct wish){.entry = "a.txt", .choice = (bugpack_write_choice)77, .session = session};
    take(session, NULL, &result);
    cr_expect(eq(uint, result.missing_count, 1));
    bugpack_close(session);
}

Test(before_write, that_hangs_lets_nothing_through_and_is_not_called_again) {
    bugpack_report_result result;
    static struct wish wish = {.entry = "a.txt", .hangs = true};
    struct wish other = {.entry = "a.txt"};
    bugpack *session = open_with(&wish, 200);
    for (unsigned i = 0; i < 2; i++) {
        take(session, NULL, &result);
        cr_expect(eq(uint, wish.call_count, 1));
        cr_expect(eq(ptr, report_read(path, "a.txt", NULL), NULL));
        cr_expect(eq(ptr, report_read(path, "big.txt", NULL), NULL));
        cr_expect(report_entry_contains(path, "manifest.json", "\"status\": \"timed_out\""));
        cr_expect(report_entry_contains(path, "manifest.json",
                                        "it still hangs, and was not called again"));
    }
    other.session = session;
    cr_expect(eq(int, (int)bugpack_before_write(session, look, &other), BUGPACK_ERR_TIMEOUT));
    take(session, NULL, &result);
    char *seen = report_read(path, "a.txt", NULL);
    cr_expect(ne(ptr, seen, NULL));
    free(seen);
    cr_expect(zero(uint, result.missing_count), "%s", result.missing);
    bugpack_close(session);
    atomic_store(&wish.may_return, true);
}

Test(before_write, that_hangs_ends_with_a_cancelled_report) {
    static struct wish wish = {.entry = "metadata.json", .hangs = true};
    bugpack *session = open_with(&wish, 600000);
    cr_assert(zero(int, (int)bugpack_report_async(session, NULL, NULL, NULL)));
    while (atomic_load(&wish.call_count) == 0) {
        (void)nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    cr_assert(zero(int, (int)bugpack_cancel(session, 0)));
    cr_expect(zero(int, (int)bugpack_flush(session, BUGPACK_OFF)));
    cr_expect(not(report_find_only(&dir, path, sizeof path)));
    atomic_store(&wish.may_return, true);
    bugpack_close(session);
}

static void recover(bool removes) {
    int ready[2];
    char byte;
    static struct wish wish = {.entry = "logs.jsonl", .choice = BUGPACK_WRITE_DROP};
    bugpack_options options = quick_options(&dir);
    options.recorder_dir = dir.path;
    options.recorder_in_memory = false;
    cr_assert(pipe(ready) == 0);
    pid_t host = fork();
    if (host == 0) {
        bugpack *session = NULL;
        if (bugpack_open(&options, &session, NULL) == BUGPACK_OK &&
            bugpack_before_write(session, look, &wish) == BUGPACK_OK &&
            (!removes || bugpack_before_write(session, NULL, NULL) == BUGPACK_OK)) {
            bugpack_log(session, BUGPACK_LEVEL_INFO, "ui", "here");
            (void)!write(ready[1], "", 1);
        }
        (void)pause();
    }
    cr_assert(read(ready[0], &byte, 1) == 1);
    (void)kill(host, SIGKILL);
    (void)waitpid(host, NULL, 0);
    cr_assert(
        bugpack_recover(&(bugpack_recover_options){.struct_size = sizeof(bugpack_recover_options),
                                                   .recorder_dir = dir.path,
                                                   .report_dir = dir.path},
                        NULL) == BUGPACK_OK);
    cr_assert(report_find_only(&dir, path, sizeof path));
    cr_expect(report_entry_contains(path, "logs.jsonl", "here"));
    (void)close(ready[0]);
    (void)close(ready[1]);
}

Test(before_write, of_a_dead_session_is_named) {
    recover(false);
    cr_expect(report_entry_contains(path, "manifest.json", "\"before_write\": \"not_applied\""));
}

Test(before_write, that_was_removed_is_not_named) {
    recover(true);
    cr_expect(not(report_entry_contains(path, "manifest.json", "before_write")));
}

Test(before_write, wants_a_session) {
    cr_expect(eq(int, (int)bugpack_before_write(NULL, look, NULL), BUGPACK_ERR_INVALID));
}
