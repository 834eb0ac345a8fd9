#include <bugpack/bindings.h>

#include <stdatomic.h>
#include <sys/stat.h>
#include <time.h>

#include "report/provider.h"
#include "unit/quick_session.h"

static void setup_and_open(void) {
    setup();
    options.sample_window_ms = BUGPACK_OFF;
    options.limits.artefact_bytes = 64 * 1024;
    open_session();
}

TestSuite(providers, .init = setup_and_open, .fini = teardown);

static int write_context(bugpack_writer *writer, void *context) {
    const char *text = context;
    return bugpack_write(writer, text, strlen(text));
}

Test(providers, json_is_checked_and_indented_with_its_numbers_untouched) {
    char json[] = "{\"id\":18446744073709551615,\"v\":[1.50,{}]}";
    provide("session.json", BUGPACK_PROVIDE_JSON, write_context, json);
    take(NULL);
    char *text = report_read(taken.path, "session.json", NULL);
    cr_assert(eq(str, text,
                 "{\n  \"id\": 18446744073709551615,\n  \"v\": [\n    1.50,\n    {}\n  ]\n}\n"));
    free(text);
    cr_assert(zero(uint, taken.missing_count));
}

Test(providers, bad_json_costs_its_own_artefact_and_is_counted) {
    char json[] = "{\n  \"a\": 01\n}";
    provide("session.json", BUGPACK_PROVIDE_JSON, write_context, json);
    take(NULL);
    cr_assert(eq(uint, taken.missing_count, 1));
    cr_assert(eq(ptr, report_read(taken.path, "session.json", NULL), NULL));
    cr_assert(holds("manifest.json", "\"complete\": false"));
    cr_assert(holds("manifest.json", "line 2, column"));
    cr_assert(ne(ptr, strstr(taken.missing, "session.json: not valid JSON: line 2"), NULL));
}

Test(providers, bytes_stay_as_they_are_and_text_becomes_valid) {
    char bytes[] = "a\xff";
    provide("raw.bin", BUGPACK_PROVIDE_BYTES, write_context, bytes);
    provide("text.txt", BUGPACK_PROVIDE_TEXT, write_context, bytes);
    take(NULL);
    CLEANUP(free_memory) char *raw = report_read(taken.path, "raw.bin", NULL);
    CLEANUP(free_memory) char *text = report_read(taken.path, "text.txt", NULL);
    cr_assert(eq(str, raw, "a\xff"));
    cr_assert(eq(str, text, "a\xEE\xBF\xBF"));
}

static int pass_on_failure(bugpack_writer *writer, void *context) {
    char piece[4096];
    memset(piece, 'x', sizeof piece);
    for (;;) {
        if (bugpack_write(writer, piece, sizeof piece) != BUGPACK_OK) {
            return -1;
        }
    }
}

Test(providers, one_that_passes_on_its_size_limit_failed_because_of_that) {
    provide("big.bin", BUGPACK_PROVIDE_BYTES, pass_on_failure, NULL);
    provide("session.json", BUGPACK_PROVIDE_JSON, pass_on_failure, NULL);
    take(NULL);
    cr_assert(eq(uint, taken.missing_count, 2));
    cr_assert(ne(ptr, strstr(taken.missing, "big.bin: it is over the limit of "), NULL), "%s",
              taken.missing);
    cr_assert(ne(ptr, strstr(taken.missing, "session.json: it is over the limit of "), NULL), "%s",
              taken.missing);
}

static int fail_with_reason(bugpack_writer *writer, void *context) {
    bugpack_printf(writer, "half of it");
    bugpack_fail(writer, "the decoder lock was \"held\" by %s", "someone");
    return -1;
}

Test(providers, a_failing_one_leaves_no_half_artefact_and_gives_its_reason) {
    provide("decoder.txt", BUGPACK_PROVIDE_TEXT, fail_with_reason, NULL);
    take(NULL);
    cr_assert(eq(ptr, report_read(taken.path, "decoder.txt", NULL), NULL));
    cr_assert(holds("manifest.json", "the decoder lock was \\\"held\\\" by someone"));
    cr_assert(holds("manifest.json", "\"status\": \"failed\""));
    cr_assert(eq(uint, taken.missing_count, 1));
}

static int fail_with_lines(bugpack_writer *writer, void *context) {
    bugpack_fail(writer, "first\nmetadata.json: \x1b[2J%0*d\xC3\xA4 is over the cut", 174, 0);
    return -1;
}

Test(providers, a_reason_is_one_line_and_cut_at_a_character) {
    provide("x.txt", BUGPACK_PROVIDE_TEXT, fail_with_lines, NULL);
    take(NULL);
    cr_assert(ne(ptr, strstr(taken.missing, "x.txt: first?metadata.json: ?[2J0"), NULL), "%s",
              taken.missing);
    cr_assert(eq(ptr, strpbrk(taken.missing, "\n\x1b\xC3"), NULL));
}

static int write_half(bugpack_writer *writer, void *is_missing) {
    bugpack_printf(writer, "the first half");
    bugpack_truncate(writer, *(const bool *)is_missing, "it was \"%s\"", "cut");
    return *(const bool *)is_missing ? 0 : bugpack_printf(writer, " and more");
}

Test(providers, one_that_truncates_says_why_and_whether_something_is_missing) {
    for (int is_missing = 0; is_missing < 2; is_missing++) {
        bool context = is_missing == 1;
        provide("x.txt", BUGPACK_PROVIDE_TEXT, write_half, &context);
        take(NULL);
        cr_assert(holds("x.txt", "the first half"));
        cr_assert(holds("manifest.json", "\"status\": \"truncated\""));
        cr_assert(holds("manifest.json", "it was \\\"cut\\\""));
        cr_assert(eq(uint, taken.missing_count, (unsigned)is_missing));
        cr_assert(bugpack_unprovide(session, "x.txt"));
    }
}

static int truncate_and_fail(bugpack_writer *writer, void *context) {
    bugpack_truncate(writer, false, "it was cut");
    return -1;
}

Test(providers, one_that_truncates_and_fails_has_failed) {
    provide("x.txt", BUGPACK_PROVIDE_TEXT, truncate_and_fail, NULL);
    take(NULL);
    cr_assert(eq(ptr, report_read(taken.path, "x.txt", NULL), NULL));
    cr_assert(holds("manifest.json", "\"status\": \"failed\""));
    cr_assert(eq(uint, taken.missing_count, 1));
}

/* `context` is a text. */
static int fail_in_text(bugpack_writer *writer, void *context) {
    return bugpack_fail_text(writer, context);
}

static int omit_in_text(bugpack_writer *writer, void *context) {
    return bugpack_omit_text(writer, context);
}

static int truncate_in_text(bugpack_writer *writer, void *context) {
    bugpack_truncate_text(writer, true, context);
    return 0;
}

/* What a language without variable arguments calls. */
Test(providers, a_reason_in_a_finished_text_is_no_format) {
    static const struct {
        const char *name;
        bugpack_provider_callback *provider;
    } rows[] = {{"a.txt", fail_in_text}, {"b.txt", omit_in_text}, {"c.txt", truncate_in_text}};
    char reason[] = "100% %s %n of it";
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        provide(rows[i].name, BUGPACK_PROVIDE_TEXT, rows[i].provider, reason);
    }
    provide("d.txt", BUGPACK_PROVIDE_TEXT, fail_in_text, NULL);
    take(NULL);
    cr_expect(holds("manifest.json", "\"status\": \"omitted\""));
    cr_expect(eq(str, taken.missing,
                 "a.txt: 100% %s %n of it\nc.txt: 100% %s %n of it\n"
                 "d.txt: the provider failed"));
}

static int warn_and_succeed(bugpack_writer *writer, void *context) {
    bugpack_fail(writer, "almost");
    return bugpack_printf(writer, "all the same");
}

static int have_nothing(bugpack_writer *writer, void *context) {
    return bugpack_omit(writer, "there is no scene");
}

Test(providers, one_that_succeeds_after_all_has_no_reason_in_the_ledger) {
    provide("x.txt", BUGPACK_PROVIDE_TEXT, warn_and_succeed, NULL);
    provide("y.json", BUGPACK_PROVIDE_JSON, have_nothing, NULL);
    take(NULL);
    cr_assert(holds("x.txt", "all the same"));
    cr_assert(not(holds("manifest.json", "almost")));
    cr_assert(holds("manifest.json", "\"omitted\"") && holds("manifest.json", "no scene"));
    cr_assert(eq(uint, taken.missing_count, 0));
}

static int take_a_while(bugpack_writer *writer, void *context) {
    return nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
}

static atomic_uint call_count;

static int count_call(bugpack_writer *writer, void *context) {
    atomic_fetch_add(&call_count, 1);
    return 0;
}

Test(providers, none_is_asked_for_a_report_that_is_too_late_already) {
    provide("wait.txt", BUGPACK_PROVIDE_TEXT, take_a_while, NULL);
    for (unsigned i = 0; i < 200; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "%u.txt", i);
        provide(name, BUGPACK_PROVIDE_TEXT, count_call, NULL);
    }
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.timeout_ms = 1;
    cr_assert(eq(int, try_report(&request), BUGPACK_ERR_TIMEOUT));
    cr_assert(zero(uint, atomic_load(&call_count)));
}

static int write_without_end(bugpack_writer *writer, void *context) {
    char block[4096] = {0};
    unsigned accepted_count = 0;
    while (bugpack_write(writer, block, sizeof block) == BUGPACK_OK) {
        accepted_count++;
    }
    return accepted_count == 16 ? 0 : -1;
}

Test(providers, one_that_gives_too_much_is_stopped_at_the_limit) {
    provide("endless", BUGPACK_PROVIDE_BYTES, write_without_end, NULL);
    take(NULL);
    cr_assert(eq(uint, taken.missing_count, 1));
    cr_assert(holds("manifest.json", "over the limit of 65536 bytes"));
}

static int report_from_inside(bugpack_writer *writer, void *context) {
    bool is_refused = bugpack_report(session, NULL, NULL, NULL) == BUGPACK_ERR_INVALID &&
                      !bugpack_unprovide(session, "inside.txt");
    bugpack_printf(writer, "%s", is_refused ? "refused" : "accepted");
    return 0;
}

Test(providers, cannot_wait_for_the_report_that_waits_for_them) {
    provide("inside.txt", BUGPACK_PROVIDE_TEXT, report_from_inside, NULL);
    take(NULL);
    cr_assert(holds("inside.txt", "refused"));
}

Test(providers, names_are_checked_and_taken_once_whatever_their_case) {
    static const struct {
        const char *name;
        bugpack_provider_callback *provider;
    } bad[] = {{"../x", write_context},
               {"manifest.json", write_context},
               {"STATE.txt", write_context},
               {"state.txt/more", write_context}, /* a file cannot be a directory too */
               {"null.txt", NULL}};
    char text[] = "x";
    provide("state.txt", BUGPACK_PROVIDE_TEXT, write_context, text);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bugpack_status status = bugpack_provide(session, bad[i].name, BUGPACK_PROVIDE_TEXT,
                                                bad[i].provider, text, &failure);
        cr_expect(eq(int, status, BUGPACK_ERR_INVALID), "%s", bad[i].name);
        cr_expect(i > 0 || strstr(failure.message, "\"../x\"") != NULL, "%s", failure.message);
    }
}

Test(providers, one_that_was_taken_off_is_not_in_the_next_report) {
    char text[] = "x";
    provide("a.txt", BUGPACK_PROVIDE_TEXT, write_context, text);
    cr_assert(bugpack_unprovide(session, "a.txt"));
    cr_assert(not(bugpack_unprovide(session, "a.txt")));
    cr_assert(not(bugpack_unprovide(session, "process.json")), "ours are not the host's to take");
    take(NULL);
    cr_assert(not(holds("manifest.json", "a.txt")));
}

static void provide_file(const char *name, const char *file, bugpack_file_kind kind,
                         uint64_t limit_bytes) {
    char path[512];
    (void)snprintf(path, sizeof path, "%s/%s", dir.path, file);
    cr_assert(zero(int, bugpack_provide_file(session, name, path, kind, limit_bytes, NULL)));
}

Test(providers, a_log_file_contributes_its_newest_whole_lines) {
    cr_assert(temp_dir_write(&dir, "app.log", "one\ntwo\nthree\n", 14));
    provide_file("logs/app.log", "app.log", BUGPACK_FILE_LOG_TAIL, 11);
    take(NULL);
    char *text = report_read(taken.path, "logs/app.log", NULL);
    cr_assert(eq(str, text, "two\nthree\n"));
    free(text);
    cr_assert(holds("manifest.json", "\"status\": \"truncated\""));
    cr_assert(holds("manifest.json", "\"original_bytes\": 14"));
    cr_assert(zero(uint, taken.missing_count), "a limit that was set is no failure");
}

Test(providers, a_file_that_is_missing_or_a_fifo_or_too_large_costs_only_itself) {
    cr_assert(zero(int, mkfifoat(dir.fd, "fifo", 0600)));
    cr_assert(temp_dir_write(&dir, "large", "0123456789", 10));
    provide_file("missing.log", "nothing-here", BUGPACK_FILE_LOG_TAIL, 0);
    provide_file("fifo.log", "fifo", BUGPACK_FILE_LOG_TAIL, 0);
    provide_file("large.bin", "large", BUGPACK_FILE_WHOLE, 9);
    provide_file("fits.bin", "large", BUGPACK_FILE_WHOLE, 10);
    take(NULL);
    cr_assert(eq(uint, taken.missing_count, 3), "%s", taken.missing);
    cr_assert(holds("manifest.json", "No such file"));
    cr_assert(holds("manifest.json", "it is a FIFO"));
    cr_assert(holds("manifest.json", "\"status\": \"omitted\""));
    cr_assert(holds("fits.bin", "0123456789"));
}

Test(providers, a_json_file_can_be_checked_before_a_report_depends_on_it) {
    cr_assert(temp_dir_write(&dir, "good.json", "{\"a\": [1, 2]}", 13));
    cr_assert(temp_dir_write(&dir, "bad.json", "{\n\"a\": tru }", 12));
    char path[512];
    (void)snprintf(path, sizeof path, "%s/good.json", dir.path);
    cr_assert(zero(int, bp_provider_check_json(path, 1000, &failure)), "%s", failure.message);
    cr_assert(eq(int, bp_provider_check_json(path, 12, &failure), BUGPACK_ERR_LIMIT));
    (void)snprintf(path, sizeof path, "%s/bad.json", dir.path);
    cr_assert(eq(int, bp_provider_check_json(path, 1000, &failure), BUGPACK_ERR_CORRUPT));
    cr_assert(
        ne(ptr, strstr(failure.message, "bad.json\" is not valid JSON: line 2, column"), NULL),
        "%s", failure.message);
}
