/*
 * Every allocation of redaction fails in turn, alone and with all that follow: while rules are
 * compiled, a report is written with them, and a report is written again. There is never a crash or
 * a leak, no secret comes out, and a failure has a status and leaves no file.
 */
#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "entries/rewrite_report.h"
#include "redact/redactor.h"
#include "report/bundle.h"
#include "support/check.h"
#include "support/failing_malloc.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

enum { libzip_leak_bytes = 64 };

static const char secret[] = "hunter2hunter2";
static const char own_rules[] = "let d = [0-9]\n"
                                "[ticket]\nkeyword = tkt-\npattern = TKT-(%{d}{4})\n"
                                "[card]\npattern = (%{d}{16})\ncheck = luhn\n"
                                "[key]\nkeyword = begin\\sx\npattern = BEGIN X\nuntil = END X\n"
                                "[password]\nkeyword = password=\npattern = password=([a-z0-9]+)\n";

static temp_dir dir;
static bp_rule_set *rules;
static char plain_path[512];

static bugpack_status append(void *context, const void *bytes, size_t byte_count) {
    return bp_buffer_append(context, bytes, byte_count);
}

static bugpack_status compile(bool with_builtin, bp_rule_set **ret_set, bugpack_error *error) {
    bp_rule_list list = {.rules = NULL};
    bugpack_status status = with_builtin ? bp_rule_list_add_builtin(&list, error) : BUGPACK_OK;
    if (status == BUGPACK_OK) {
        status = bp_rule_list_parse(&list, "rules", own_rules, strlen(own_rules), error);
    }
    if (status == BUGPACK_OK) {
        return bp_rule_set_new(&list, ret_set, error);
    }
    bp_rule_list_release(&list);
    return status;
}

/* A log in pieces, with lines over one piece, and JSON; what comes out before a failure counts. */
static bugpack_status redact(const bp_rule_set *set, bp_buffer *out) {
    static const char *const texts[] = {
        "a password=hunter2hunter2 b\nTKT-1234\n4111111111111111\nBEGIN X\nhunter2hunter2\nEND X\n",
        "{\"m\":\"pass\\u0077ord=hunter2hunter2 \",\"n\":[\"password=hunter2hunter2\"]}\n"};
    bp_redactor *redactor = bp_redactor_new(set);
    bugpack_status status = redactor == NULL ? BUGPACK_ERR_NO_MEMORY : BUGPACK_OK;
    for (int form = BP_REDACT_TEXT; status == BUGPACK_OK && form <= BP_REDACT_JSON_LINES; form++) {
        const char *text = texts[form != BP_REDACT_TEXT];
        bp_redactor_begin(redactor, (bp_redact_form)form);
        for (size_t at = 0; status == BUGPACK_OK && at < strlen(text); at += 7) {
            status = bp_redactor_write(redactor, text + at, strnlen(text + at, 7), append, out);
        }
        if (status == BUGPACK_OK) {
            status = bp_redactor_text(redactor, "password=hunter2hunter2", 23, out);
        }
        if (status == BUGPACK_OK) {
            status = bp_redactor_write(redactor, NULL, 0, append, out);
        }
    }
    bp_redactor_free(redactor);
    return status;
}

static bugpack_status try_engine(bugpack_error *error) {
    static char room[4096]; /* the buffer's memory must not be what fails */
    bp_rule_set *set = NULL;
    bp_buffer out;
    bp_buffer_init(&out, sizeof room);
    bugpack_status status = compile(false, &set, error);
    if (status == BUGPACK_OK) {
        status = redact(set, &out);
    }
    CHECK(memmem(out.data, out.size, secret, strlen(secret)) == NULL);
    CHECK(memmem(out.data, out.size, "TKT-1234", 8) == NULL);
    bp_buffer_release(&out);
    bp_rule_set_drop(set);
    return status;
}

static bugpack_status write_report(const bp_rule_set *set, const char *stem, bugpack_error *error) {
    static const char *const entries[] = {"metadata.json", "logs/password=hunter2hunter2.log",
                                          "logs.jsonl"};
    const bp_bundle_target target = {.dir_fd = dir.fd,
                                     .dir_name = dir.path,
                                     .report_id = "01234567-89ab-cdef-0123-456789abcdef",
                                     .wall_ns = 1774751400000000000u,
                                     .rules = set,
                                     .is_strict = true};
    bp_bundle *bundle = NULL;
    char name[256];
    uint64_t byte_count = 0;
    bugpack_status status = bp_bundle_new(&target, &bundle, error);
    for (size_t i = 0; status == BUGPACK_OK && i < sizeof entries / sizeof entries[0]; i++) {
        bugpack_writer writer;
        bp_writer_init(&writer, 4096);
        status = bp_buffer_append_text(
            &writer.content, i == 0 ? "{\"report_id\": \"01234567-89ab-cdef-0123-456789abcdef\", "
                                      "\"schema\": 2, \"description\": \"password=hunter2hunter2\"}"
                                    : "{\"message\": \"password=hunter2hunter2\"}\n");
        status = bp_bundle_put(bundle, entries[i], status, &writer, error);
    }
    if (status == BUGPACK_OK) {
        status = bp_bundle_publish(bundle, &(bp_trigger_list){0}, stem, ".zip", name, sizeof name,
                                   &byte_count, error);
    }
    bp_bundle_free(bundle);
    return status;
}

static bugpack_status try_report(bugpack_error *error) {
    return write_report(rules, "report", error);
}

static bugpack_status try_again(bugpack_error *error) {
    char output[sizeof dir.path + 32], name[256];
    uint64_t count = 0;
    (void)snprintf(output, sizeof output, "%s/report.zip", dir.path);
    const bp_rewrite_request request = {
        .path = plain_path, .rules = rules, .output_path = output, .hook = {.call = NULL}};
    return bp_rewrite_report(&request, name, sizeof name, &count, error);
}

/* What was published, if anything, is a zip without the secret; it is removed. */
static void check_published(const char *name, bugpack_status status) {
    static char bytes[65536];
    char path[sizeof dir.path + 300];
    bool is_there = temp_dir_has(&dir, name);
    CHECK(is_there == (status == BUGPACK_OK));
    if (!is_there) {
        return;
    }
    size_t byte_count = temp_dir_read(&dir, name, bytes, sizeof bytes);
    CHECK(byte_count > 100 && byte_count < sizeof bytes);
    CHECK(memmem(bytes, byte_count, secret, strlen(secret)) == NULL);
    (void)snprintf(path, sizeof path, "%s/%s", dir.path, name);
    char *names = report_list(path);
    CHECK(names != NULL && strstr(names, secret) == NULL && strstr(names, "manifest.json") != NULL);
    free(names);
    CHECK(!report_entry_contains(path, "metadata.json", secret));
    CHECK(!report_entry_contains(path, "logs.jsonl", secret));
    CHECK(report_entry_contains(path, "logs.jsonl", "password=REDACTED-password-"));
    CHECK(unlink(path) == 0);
}

static void fail_each(const char *what, bugpack_status (*work)(bugpack_error *error),
                      const char *name, bool and_all_later, bool is_second) {
    unsigned long tried, nth = 0, failed = 0;
    bugpack_status status;
    bugpack_error error = BUGPACK_ERROR_INIT;
    do {
        size_t used = mallinfo2().uordblks;
        nth++;
        error = (bugpack_error)BUGPACK_ERROR_INIT;
        failing_malloc_arm(nth, and_all_later);
        status = work(&error);
        tried = failing_malloc_disarm();
        failed += status != BUGPACK_OK;
        if (name != NULL) {
            check_published(name, status);
        }
        CHECK(temp_dir_count(&dir) == 1);
        /* What libraries keep they have kept since the first round. libzip leaks an extra field
         * where its own allocations fail while it writes, and more while it reads (`try_again`). */
        CHECK(!is_second || work == try_again || mallinfo2().uordblks <= used + libzip_leak_bytes);
    } while (tried >= nth);
    CHECK(status == BUGPACK_OK && failed > 20);
    (void)printf("%s, %s: %lu of %lu turns failed\n", what,
                 and_all_later ? "one and all later" : "one allocation", failed, nth);
}

int main(int argument_count, char **arguments) {
    (void)argument_count;
    count_heap_exactly(arguments);
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK(temp_dir_make(&dir));
    CHECK(compile(true, &rules, &error) == BUGPACK_OK);
    (void)snprintf(plain_path, sizeof plain_path, "%s/plain.zip", dir.path);
    CHECK(write_report(NULL, "plain", &error) == BUGPACK_OK);
    for (unsigned round = 0; round < 4; round++) {
        bool and_all_later = round % 2 != 0, is_second = round >= 2;
        fail_each("rules and texts", try_engine, NULL, and_all_later, is_second);
        fail_each("a report", try_report, "report.zip", and_all_later, is_second);
        fail_each("again", try_again, "report.zip", and_all_later, is_second);
    }
    bp_rule_set_drop(rules);
    temp_dir_remove(&dir);
    return 0;
}
