/*
 * What is saved of a damaged report: a report that `bugpack verify` accepts, and that says what was
 * lost.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "archive/archive.h"
#include "archive/directory.h"
#include "inspect/salvage.h"
#include "inspect/verify.h"
#include "support/report_reader.h"
#include "unit/made_report.h"
#include "unit/taken_report.h"

TestSuite(salvage, .init = setup, .fini = teardown);

Test(salvage, what_is_saved_of_a_cut_report_is_whole) {
    made_zip zip;
    size_t saved = 0;
    made_report_sound(&zip);
    for (size_t size = 0; size < zip.bytes.size; size += 29) {
        bp_salvage_result result;
        bugpack_error error = BUGPACK_ERROR_INIT;
        char output[300], name[256];
        (void)snprintf(output, sizeof output, "%s/saved.zip", dir.path);
        int fd = made_zip_file(zip.bytes.data, size);
        bugpack_status status =
            bp_salvage(fd, BP_VERIFY_MAX_BYTES, output, name, sizeof name, &result, &error);
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
        bp_salvage_release(&result);
        (void)snprintf(output, sizeof output, "%s/%s", dir.path, name);
        char bytes[16384];
        size_t count = temp_dir_read(&dir, name, bytes, sizeof bytes);
        cr_expect(eq(str, (char *)made_report_faults(bytes, count, BP_VERIFY_MAX_BYTES), ""),
                  "at %zu", size);
        (void)unlink(output);
    }
    cr_expect(gt(sz, saved, 10));
    made_zip_release(&zip);
}

/* Saves what can be saved of a zip, which is released; the result is the caller's to release.
 * Returns what `bugpack verify` says of the new report. */
static const char *salvage(made_zip *zip, char *output, size_t output_bytes,
                           bp_salvage_result *ret_result) {
    char name[256], bytes[16384];
    bugpack_error error = BUGPACK_ERROR_INIT;
    (void)snprintf(output, output_bytes, "%s/saved.zip", dir.path);
    (void)unlink(output);
    int fd = made_zip_file(zip->bytes.data, zip->bytes.size);
    bugpack_status status =
        bp_salvage(fd, BP_VERIFY_MAX_BYTES, output, name, sizeof name, ret_result, &error);
    (void)close(fd);
    made_zip_release(zip);
    cr_assert(eq(int, status, BUGPACK_OK), "%s", error.message);
    return made_report_faults(bytes, temp_dir_read(&dir, name, bytes, sizeof bytes),
                              BP_VERIFY_MAX_BYTES);
}

Test(salvage, saves_the_entries_around_a_damaged_one_and_corrects_the_manifest) {
    made_zip zip;
    bp_salvage_result result;
    char output[300];
    made_report_sound(&zip);
    zip.bytes.data[zip.local[1] + 50] ^= 1;
    cr_expect(eq(str, (char *)salvage(&zip, output, sizeof output, &result), ""));
    cr_expect(eq(str, (char *)bp_buffer_text(&result.lost),
                 "entry \"logs.jsonl\": it has a wrong checksum\n"));
    bp_salvage_release(&result);
    cr_expect(report_entry_contains(output, "manifest.json",
                                    "\"reason\": \"lost: it has a wrong checksum\""));
    cr_expect(report_entry_contains(output, "manifest.json", "\"missing\": 1"));
    cr_expect(report_entry_contains(output, "manifest.json", "\"complete\": false"));
}

Test(salvage, what_is_saved_is_listed_as_what_it_is_whatever_the_old_manifest_says) {
    static const char unlisted[] =
        "\"note\": \"in the damaged report, whose manifest does not list it\"";
    static const char changed[] = "\"reason\": \"it was changed after the manifest was written\"";
    static const struct {
        const char *line, *lost, *unlisted, *said;
    } cases[] = {
        {"", "", "entry \"x\"\n", unlisted},
        {"{\"name\": \"x\", \"status\": \"omitted\", \"bytes\": 0, \"duration_ms\": 1, "
         "\"reason\": \"too large\"}",
         "", "entry \"x\"\n", unlisted},
        {"{\"name\": \"x\", \"status\": \"ok\", \"bytes\": 7, \"duration_ms\": 1}",
         "entry \"x\": it was changed after the manifest was written\n", "", changed},
        {"{\"name\": \"x\", \"status\": \"ok\", \"bytes\": 6, \"duration_ms\": 1, \"sha256\": "
         "\"0000000000000000000000000000000000000000000000000000000000000000\"}",
         "entry \"x\": it was changed after the manifest was written\n", "", changed},
        {"{\"name\": \"x\", \"status\": \"ok\", \"bytes\": 6, \"duration_ms\": 1}", "", "",
         "\"bytes\": 6"},
        {"{\"name\": \"y\", \"status\": \"failed\", \"bytes\": 6, \"duration_ms\": 1}",
         "entry \"y\": it is not there\n", "entry \"x\"\n",
         "\"reason\": \"lost: it is not there\""},
        {"{\"name\": \"x\"}", "entry \"manifest.json\": an artefact has no name or status\n", "",
         "\"note\": \"from a damaged report without a manifest\""},
        {"{\"name\": \"x\", \"status\": \"ok\", \"bytes\": 6, \"duration_ms\": 1}, {\"name\": "
         "\"x\", \"status\": \"ok\", \"bytes\": 6, \"duration_ms\": 1}",
         "entry \"manifest.json\": an artefact is listed twice\n", "",
         "\"note\": \"from a damaged report without a manifest\""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        made_report report;
        made_zip zip;
        bp_salvage_result result;
        char output[300];
        made_report_begin(&report);
        made_report_add(&report, "x", "actual");
        (void)bp_buffer_printf(&report.manifest, "%s%s", cases[i].line[0] != '\0' ? ", " : "",
                               cases[i].line);
        made_report_end(&report, &zip);
        cr_expect(eq(str, (char *)salvage(&zip, output, sizeof output, &result), ""), "%zu", i);
        cr_expect(eq(sz, result.saved_count, 2), "%zu", i);
        cr_expect(
            eq(int, strncmp(bp_buffer_text(&result.lost), cases[i].lost, strlen(cases[i].lost)), 0),
            "%zu: %s", i, bp_buffer_text(&result.lost));
        cr_expect(eq(int, result.lost_count > 0, cases[i].lost[0] != '\0'), "%zu", i);
        cr_expect(eq(str, (char *)bp_buffer_text(&result.unlisted), (char *)cases[i].unlisted),
                  "%zu", i);
        cr_expect(report_entry_contains(output, "x", "actual"), "%zu", i);
        cr_expect(report_entry_contains(output, "manifest.json", cases[i].said), "%zu", i);
        cr_expect(report_entry_contains(output, "manifest.json",
                                        result.lost_count > 0 ? "\"complete\": false"
                                                              : "\"complete\": true"),
                  "%zu", i);
        bp_salvage_release(&result);
    }
}

Test(salvage, a_manifest_of_another_report_does_not_speak_for_what_is_saved) {
    made_report report;
    made_zip zip;
    bp_salvage_result result;
    char output[300];
    made_report_begin(&report);
    strstr(report.manifest.data, made_report_id)[0] = 'f';
    made_report_end(&report, &zip);
    cr_expect(eq(str, (char *)salvage(&zip, output, sizeof output, &result), ""));
    cr_expect(eq(str, (char *)bp_buffer_text(&result.lost),
                 "entry \"manifest.json\": its report_id is not that of metadata.json\n"));
    cr_expect(report_entry_contains(output, "manifest.json", made_report_id));
    bp_salvage_release(&result);
}

/* More than a report may have, and more than memory for each. */
Test(salvage, saves_no_more_entries_than_a_report_has) {
    static const unsigned char local[BP_ZIP_LOCAL_BYTES] = {
        'P', 'K', 3, 4, 20, [26] = 5, /* stored, empty, and a name of 5 bytes */
    };
    made_zip zip;
    bp_salvage_result result;
    char output[300], name[256];
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_buffer_init(&zip.bytes, (size_t)1 << 20);
    for (int i = 0; i < 5000; i++) {
        (void)bp_buffer_append(&zip.bytes, local, sizeof local);
        (void)bp_buffer_printf(&zip.bytes, "%05d", i);
    }
    (void)snprintf(output, sizeof output, "%s/saved.zip", dir.path);
    int fd = made_zip_file(zip.bytes.data, zip.bytes.size);
    cr_assert(eq(int,
                 bp_salvage(fd, BP_VERIFY_MAX_BYTES, output, name, sizeof name, &result, &error),
                 BUGPACK_OK),
              "%s", error.message);
    (void)close(fd);
    cr_expect(eq(sz, result.saved_count, BP_ARCHIVE_ENTRY_MAX - 1));
    cr_expect(eq(str, (char *)bp_buffer_text(&result.lost),
                 "entry \"04095\": a report has no more entries\n"
                 "all from byte 143360 on: a report has no more entries\n"
                 "entry \"manifest.json\": it is not there\n"
                 "entry \"metadata.json\": it is not there\n"));
    bp_salvage_release(&result);
    bp_buffer_release(&zip.bytes);
    fd = open(output, O_RDONLY | O_CLOEXEC);
    bp_verify_result verified;
    cr_assert(eq(int, bp_verify(fd, BP_VERIFY_MAX_BYTES, &verified, NULL), BUGPACK_OK));
    cr_expect(eq(str, (char *)bp_buffer_text(&verified.faults), ""));
    bp_verify_release(&verified);
    (void)close(fd);
}
