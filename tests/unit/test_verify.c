/*
 * Whether a report is whole: what a taken one is, and every way in which one is not.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/sha256.h"
#include "inspect/rescue.h"
#include "inspect/verify.h"
#include "support/made_zip.h"
#include "support/report_reader.h"
#include "unit/taken_report.h"

TestSuite(verify, .init = setup, .fini = teardown);

static const char id[] = "0123456789abcdef0123456789abcdef";
static const char record[] =
    "{\"seq\": 1, \"time\": \"2026-11-21T08:36:51.123456Z\", \"monotonic_ns\": 1, "
    "\"level\": \"info\", \"tid\": 1, \"thread\": \"t\", \"message\": \"m\"}\n";

/* What is wrong with the bytes of a file, into a text that the next call overwrites; "" for
 * nothing. */
static const char *faults_of(const void *bytes, size_t byte_count, uint64_t max_bytes) {
    static char faults[4096];
    bp_verify_result result;
    bugpack_error error = BUGPACK_ERROR_INIT;
    int fd = made_zip_file(bytes, byte_count);
    cr_assert(ge(int, fd, 0));
    cr_assert(eq(int, bp_verify(fd, max_bytes, &result, &error), BUGPACK_OK), "%s", error.message);
    (void)snprintf(faults, sizeof faults, "%s", bp_buffer_text(&result.faults));
    cr_expect(eq(int, result.fault_count > 0, faults[0] != '\0'));
    bp_verify_release(&result);
    (void)close(fd);
    return faults;
}

/* A report that is being made, with a manifest for its members. */
typedef struct made_report {
    made_member members[MADE_ZIP_MEMBER_MAX];
    size_t count;
    bp_buffer manifest;
} made_report;

static void list(made_report *report, const char *name, const char *content, const char *sha256) {
    char own[BP_SHA256_TEXT_BYTES];
    struct sha256_ctx hash;
    sha256_init(&hash);
    sha256_update(&hash, strlen(content), (const uint8_t *)content);
    bp_sha256_print(&hash, own);
    (void)bp_buffer_printf(&report->manifest,
                           "%s{\"name\": \"%s\", \"status\": \"ok\", \"bytes\": %zu, "
                           "\"duration_ms\": 1%s%s%s}",
                           report->manifest.data[report->manifest.size - 1] == '[' ? "" : ", ",
                           name, strlen(content), sha256[0] != '\0' ? ", \"sha256\": \"" : "",
                           sha256[0] == '=' ? own : sha256, sha256[0] != '\0' ? "\"" : "");
}

static void add(made_report *report, const char *name, const char *content) {
    report->members[report->count++] = (made_member){name, content, strlen(content) > 200};
}

/* With metadata.json, taken from a real report, and one line in logs.jsonl. */
static void begin(made_report *report) {
    static char metadata[8192];
    bugpack_options options = quick_options(&dir);
    bugpack *session = open_session(&options);
    take(session, NULL, NULL);
    bugpack_close(session);
    char *text = report_read(path, "metadata.json", NULL);
    cr_assert(ne(ptr, text, NULL));
    char *at = strstr(text, "\"report_id\": \"");
    cr_assert(ne(ptr, at, NULL));
    memcpy(at + strlen("\"report_id\": \""), id, sizeof id - 1);
    (void)snprintf(metadata, sizeof metadata, "%s", text);
    free(text);
    *report = (made_report){.count = 0};
    bp_buffer_init(&report->manifest, 1 << 16);
    (void)bp_buffer_printf(&report->manifest,
                           "{\"schema\": 2, \"report_id\": \"%s\", \"complete\": true, "
                           "\"missing\": 0, \"artefacts\": [",
                           id);
    add(report, "metadata.json", metadata);
    list(report, "metadata.json", metadata, "=");
}

/* Ends the manifest, and says what is wrong with the whole. */
static const char *finish(made_report *report) {
    made_zip zip;
    (void)bp_buffer_append_text(&report->manifest, "]}");
    add(report, "manifest.json", bp_buffer_text(&report->manifest));
    made_zip_build(&zip, report->members, report->count);
    const char *faults = faults_of(zip.bytes.data, zip.bytes.size, BP_VERIFY_MAX_BYTES);
    made_zip_release(&zip);
    bp_buffer_release(&report->manifest);
    return faults;
}

static void expect_fault(const char *faults, const char *wanted) {
    cr_expect(strstr(faults, wanted) != NULL, "<%s> does not say <%s>", faults, wanted);
}

Test(verify, a_taken_report_is_whole) {
    bugpack_options options = quick_options(&dir);
    bugpack *session = open_session(&options);
    (void)bugpack_log(session, BUGPACK_LEVEL_ERROR, "main", "a line");
    take(session, "it hung", NULL);
    bugpack_close(session);
    bp_verify_result result;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    cr_assert(eq(int, bp_verify(fd, BP_VERIFY_MAX_BYTES, &result, NULL), BUGPACK_OK));
    cr_expect(eq(str, (char *)bp_buffer_text(&result.faults), ""));
    cr_expect(gt(sz, result.entry_count, 2));
    cr_expect(not(result.lacks_sha256));
    cr_expect(not(result.lacks_schemas));
    bp_verify_release(&result);
    (void)close(fd);
}

Test(verify, a_made_report_is_whole) {
    made_report report;
    begin(&report);
    add(&report, "logs.jsonl", record);
    list(&report, "logs.jsonl", record, "=");
    cr_expect(eq(str, (char *)finish(&report), ""));
}

Test(verify, compares_entries_with_the_manifest) {
    static const struct {
        const char *name, *listed, *sha256, *why;
    } cases[] = {
        {"x", "other!", "=", "entry \"x\": its SHA-256 is not what the manifest says"},
        {"x", "others", "=", "entry \"x\": its SHA-256 is not what the manifest says"},
        {"x", "longer content", "=", "entry \"x\": the manifest says another size"},
        {"x", "actual", "", "entry \"x\": the manifest says no SHA-256 of it"},
        {"y", "actual", "=", "entry \"x\": the manifest does not list it"},
        {"y", "actual", "=", "entry \"y\": the manifest lists it, and it is not there"},
        {"manifest.json", "", "=", "entry \"manifest.json\": the manifest lists it"},
    };
    for (size_t i = 0; i + 1 < sizeof cases / sizeof cases[0]; i++) {
        made_report report;
        begin(&report);
        add(&report, "x", "actual");
        list(&report, cases[i].name, cases[i].listed, cases[i].sha256);
        expect_fault(finish(&report), cases[i].why);
    }
}

Test(verify, an_older_manifest_without_any_sha256_is_no_fault) {
    made_report report;
    made_zip zip;
    bp_verify_result result;
    begin(&report);
    report.manifest.size = (size_t)(strchr(report.manifest.data, '[') - report.manifest.data) + 1;
    report.manifest.data[report.manifest.size] = '\0';
    list(&report, "metadata.json", report.members[0].content, "");
    (void)bp_buffer_append_text(&report.manifest, "]}");
    add(&report, "manifest.json", bp_buffer_text(&report.manifest));
    made_zip_build(&zip, report.members, report.count);
    int fd = made_zip_file(zip.bytes.data, zip.bytes.size);
    cr_assert(eq(int, bp_verify(fd, BP_VERIFY_MAX_BYTES, &result, NULL), BUGPACK_OK));
    cr_expect(eq(str, (char *)bp_buffer_text(&result.faults), ""));
    cr_expect(result.lacks_sha256);
    bp_verify_release(&result);
    (void)close(fd);
    made_zip_release(&zip);
    bp_buffer_release(&report.manifest);
}

Test(verify, checks_json_against_its_schema) {
    static const struct {
        const char *name, *content, *why;
    } cases[] = {
        {"logs.jsonl", "{\"seq\": 1}\n", "line 1: it lacks \""},
        {"logs.jsonl", "{}", "entry \"logs.jsonl\": line 1: it lacks"},
        {"session.json", "{\"a\": 1, \"a\": 2}", "line 1, column 10: this key was there before"},
        {"session.json", "{\"a\": 01}", "line 1, column 7: a number must not begin with 0"},
        {"channel-state.json", "", "there is no text"},
        {"heap-state.json", "[]", "entry \"heap-state.json\": it is of another type"},
        {"processes/7-x/heap-state.json", "[]", "it is of another type"},
        {"threads.json", "{\"schema\": 1}", "schema has another value"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        made_report report;
        begin(&report);
        add(&report, cases[i].name, cases[i].content);
        list(&report, cases[i].name, cases[i].content, "=");
        expect_fault(finish(&report), cases[i].why);
    }
    made_report report;
    begin(&report);
    add(&report, "attached.json", "no JSON at all");
    list(&report, "attached.json", "no JSON at all", "=");
    add(&report, "processes/7-x/logs/metadata.json", "a line");
    list(&report, "processes/7-x/logs/metadata.json", "a line", "=");
    cr_expect(eq(str, (char *)finish(&report), ""), "an attached file and a log may be anything");
}

Test(verify, refuses_a_manifest_that_is_none) {
    static const struct {
        const char *text, *why;
    } cases[] = {{"{", "entry \"manifest.json\": line 1, column 2"},
                 {"{}", "entry \"manifest.json\": it does not say which schema it has"},
                 {"[]", "entry \"manifest.json\": it does not say which schema it has"},
                 {"{\"schema\": 2}", "entry \"manifest.json\": it lacks \""},
                 {"{\"schema\": 3}", "a later bugpack wrote it"},
                 {NULL, "entry \"manifest.json\": it is not there"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const made_member members[] = {{"a", "b", false}, {"manifest.json", cases[i].text, false}};
        made_zip zip;
        made_zip_build(&zip, members, cases[i].text != NULL ? 2 : 1);
        expect_fault(faults_of(zip.bytes.data, zip.bytes.size, BP_VERIFY_MAX_BYTES), cases[i].why);
        made_zip_release(&zip);
    }
}

Test(verify, notices_metadata_of_another_report) {
    made_report report;
    begin(&report);
    char *at = strstr(report.manifest.data, id);
    at[0] = 'f';
    expect_fault(finish(&report), "entry \"metadata.json\": its report_id is not that of");
}

Test(verify, names_the_entry_whose_bytes_are_damaged_and_goes_on) {
    static const made_member members[] = {
        {"a", "one", false}, {"b", "two", false}, {"c", "three", false}};
    made_zip zip;
    made_zip_build(&zip, members, 3);
    zip.bytes.data[zip.local[0] + 31] ^= 1;
    zip.bytes.data[zip.local[2] + 31] ^= 1;
    const char *faults = faults_of(zip.bytes.data, zip.bytes.size, BP_VERIFY_MAX_BYTES);
    expect_fault(faults, "entry \"a\" has a wrong checksum");
    expect_fault(faults, "entry \"c\" has a wrong checksum");
    cr_expect(strstr(faults, "\"b\"") == NULL, "%s", faults);
    made_zip_release(&zip);
}

Test(verify, stops_before_more_bytes_than_are_allowed) {
    static const made_member members[] = {{"a", "0123456789", false}, {"b", "0123456789", true}};
    made_zip zip;
    made_zip_build(&zip, members, 2);
    expect_fault(faults_of(zip.bytes.data, zip.bytes.size, 19),
                 "it holds 20 bytes, over the limit");
    expect_fault(faults_of(zip.bytes.data, zip.bytes.size, 20),
                 "\"manifest.json\": it is not there");
    made_zip_release(&zip);
}

/* A small sound report, whose bytes the caller releases. */
static void build_sound(made_zip *zip) {
    made_report report;
    begin(&report);
    add(&report, "logs.jsonl", record);
    list(&report, "logs.jsonl", record, "=");
    (void)bp_buffer_append_text(&report.manifest, "]}");
    add(&report, "manifest.json", bp_buffer_text(&report.manifest));
    for (size_t i = 0; i < report.count; i++) {
        report.members[i].is_deflated = false; /* two streams may be one content */
    }
    made_zip_build(zip, report.members, report.count);
    cr_assert(
        eq(str, (char *)faults_of(zip->bytes.data, zip->bytes.size, BP_VERIFY_MAX_BYTES), ""));
    bp_buffer_release(&report.manifest);
}

Test(verify, no_report_that_is_cut_is_whole) {
    made_zip zip;
    build_sound(&zip);
    for (size_t size = 0; size < zip.bytes.size; size++) {
        const char *faults = faults_of(zip.bytes.data, size, BP_VERIFY_MAX_BYTES);
        cr_expect(strcmp(faults, "it is no zip, or its end is missing") == 0, "%zu: %s", size,
                  faults);
    }
    made_zip_release(&zip);
}

/* Versions and attributes: nobody reads them, but for the type of the file. */
static bool is_ignored(const made_zip *zip, size_t at) {
    for (size_t i = 0; i < 3; i++) {
        size_t local = at - zip->local[i], central = at - zip->central[i];
        if (local == 4 || local == 5 || (central >= 4 && central <= 7) ||
            (central >= 36 && central <= 41)) {
            return true;
        }
    }
    return false;
}

Test(verify, no_report_with_a_flipped_bit_is_whole) {
    made_zip zip;
    build_sound(&zip);
    for (size_t at = 0; at < zip.bytes.size; at++) {
        zip.bytes.data[at] = (char)(zip.bytes.data[at] ^ 1 << at % 8);
        cr_expect(is_ignored(&zip, at) ||
                      faults_of(zip.bytes.data, zip.bytes.size, BP_VERIFY_MAX_BYTES)[0] != '\0',
                  "bit %zu of byte %zu", at % 8, at);
        zip.bytes.data[at] = (char)(zip.bytes.data[at] ^ 1 << at % 8);
    }
    made_zip_release(&zip);
}

Test(verify, what_is_saved_of_a_cut_report_is_whole) {
    made_zip zip;
    size_t saved = 0;
    build_sound(&zip);
    for (size_t size = 0; size < zip.bytes.size; size += 29) {
        bp_rescue_result result;
        bugpack_error error = BUGPACK_ERROR_INIT;
        char output[300], name[256];
        (void)snprintf(output, sizeof output, "%s/saved.zip", dir.path);
        int fd = made_zip_file(zip.bytes.data, size);
        bugpack_status status =
            bp_rescue(fd, BP_VERIFY_MAX_BYTES, output, name, sizeof name, &result, &error);
        (void)close(fd);
        cr_assert(status == BUGPACK_OK || status == BUGPACK_ERR_CORRUPT, "%s", error.message);
        cr_expect(eq(int, status == BUGPACK_OK, size >= zip.local[1]), "at %zu", size);
        if (status != BUGPACK_OK) {
            cr_expect(eq(str, error.message, "nothing of it can be saved"));
            continue;
        }
        saved++;
        cr_expect(eq(sz, result.saved_count, size < zip.local[2] ? 1 : 2));
        cr_expect(eq(int, result.lost_count > 0, size < zip.directory), "at %zu", size);
        bp_rescue_release(&result);
        (void)snprintf(output, sizeof output, "%s/%s", dir.path, name);
        char bytes[16384];
        size_t count = temp_dir_read(&dir, name, bytes, sizeof bytes);
        cr_expect(eq(str, (char *)faults_of(bytes, count, BP_VERIFY_MAX_BYTES), ""), "at %zu",
                  size);
        (void)unlink(output);
    }
    cr_expect(gt(sz, saved, 10));
    made_zip_release(&zip);
}

Test(verify, saves_the_entries_around_a_damaged_one_and_corrects_the_manifest) {
    made_zip zip;
    bp_rescue_result result;
    char output[300], name[256];
    build_sound(&zip);
    zip.bytes.data[zip.local[1] + 50] ^= 1;
    (void)snprintf(output, sizeof output, "%s/saved.zip", dir.path);
    int fd = made_zip_file(zip.bytes.data, zip.bytes.size);
    cr_assert(eq(int, bp_rescue(fd, BP_VERIFY_MAX_BYTES, output, name, sizeof name, &result, NULL),
                 BUGPACK_OK));
    (void)close(fd);
    cr_expect(eq(str, (char *)bp_buffer_text(&result.lost),
                 "entry \"logs.jsonl\": it has a wrong checksum\n"));
    bp_rescue_release(&result);
    cr_expect(report_entry_contains(output, "manifest.json",
                                    "\"reason\": \"lost: it has a wrong checksum\""));
    cr_expect(report_entry_contains(output, "manifest.json", "\"missing\": 1"));
    cr_expect(report_entry_contains(output, "manifest.json", "\"complete\": false"));
    made_zip_release(&zip);
}
