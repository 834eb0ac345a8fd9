/*
 * A report opened for reading.
 */
#include "entries/report_file.h"
#include "support/made_zip.h"
#include "unit/unit.h"

#define METADATA                                                                                   \
    "{\"schema\": 2, \"report_id\": \"0a\", \"app\": {\"name\": \"v\\u00e9\"}, \"report_type\": "  \
    "\"crash\", \"timestamp\": \"2026\", \"later\": [1]}"
#define MANIFEST                                                                                   \
    "{\"schema\": 2, \"report_id\": \"0a\", \"artefacts\": [{\"name\": \"a.log\", \"status\": "    \
    "\"ok\"}, {\"reason\": \"no \\\"room\\\"\", \"name\": \"b.log\", \"status\": \"failed\"}, "    \
    "{\"status\": \"ok\"}], \"triggers\": [{\"name\": \"c.log\", \"reason\": \"x\"}]}"

static const made_member members[] = {{"metadata.json", METADATA, true},
                                      {"a.log", "one line\n", true},
                                      {"manifest.json", MANIFEST, false}};

static bugpack_status open_made(const made_member *given, size_t count, bp_report_file **ret_report,
                                bugpack_error *error) {
    made_zip zip;
    made_zip_build(&zip, given, count);
    int fd = made_zip_file(zip.bytes.data, zip.bytes.size);
    made_zip_release(&zip);
    bugpack_status status = bp_report_file_take(fd, "t.zip", ret_report, error);
    if (status != BUGPACK_OK) {
        cr_expect(eq(int, close(fd), 0), "the descriptor was taken by a failure");
    }
    return status;
}

static bp_report_file *open_good(void) {
    bp_report_file *report = NULL;
    cr_assert(open_made(members, 3, &report, &failure) == BUGPACK_OK, "%s", failure.message);
    return report;
}

Test(report_file, says_which_report_it_is) {
    bp_report_file *report = open_good();
    const bp_json_tree *metadata = bp_report_file_metadata(report);
    cr_expect(eq(str, bp_json_tree_text_or(metadata, "report_id", ""), "0a"));
    cr_expect(eq(str, bp_json_tree_text_or(metadata, "timestamp", ""), "2026"));
    cr_expect(bp_report_file_has(report, "manifest.json", NULL));
    cr_expect(not(bp_report_file_has(report, "b.log", NULL)));
    bp_report_file_close(report);
}

Test(report_file, reads_entries_within_the_limit_of_the_buffer) {
    bp_report_file *report = open_good();
    BUFFER(out, 11);
    (void)bp_buffer_append_text(&out, "> ");
    cr_expect(eq(int, bp_report_file_read(report, "a.log", &out, &failure), BUGPACK_OK));
    cr_expect(eq(str, bp_buffer_text(&out), "> one line\n"));
    cr_expect(eq(int, bp_report_file_read(report, "a.log", &out, &failure), BUGPACK_ERR_LIMIT));
    cr_expect(eq(str, bp_buffer_text(&out), "> one line\n"));
    cr_expect(eq(int, bp_report_file_read(report, "b.log", &out, &failure), BUGPACK_ERR_INVALID));
    bp_report_file_close(report);
}

Test(report_file, finds_the_line_of_an_artefact_in_the_manifest) {
    bp_report_file *report = open_good();
    const bp_json_tree *line = bp_report_file_line(report, "b.log");
    cr_expect(eq(str, bp_json_tree_text_or(line, "status", ""), "failed"));
    cr_expect(eq(str, bp_json_tree_text_or(line, "reason", ""), "no \"room\""));
    line = bp_report_file_line(report, "a.log");
    cr_expect(eq(str, bp_json_tree_text_or(line, "status", ""), "ok"));
    cr_expect(eq(ptr, (void *)bp_json_tree_text(line, "reason"), NULL));
    cr_expect(eq(ptr, (void *)bp_report_file_line(report, "c.log"), NULL),
              "a trigger is no artefact");
    bp_report_file_close(report);
}

Test(report_file, refuses_what_is_no_report_and_says_why) {
    static const struct {
        const char *metadata, *manifest, *why;
    } cases[] = {
        {NULL, MANIFEST, "metadata.json: it is not there"},
        {METADATA, NULL, "manifest.json: it is not there"},
        {"{", MANIFEST, "metadata.json: line 1, column 2"},
        {"[]", MANIFEST, "metadata.json: it does not say which schema it has"},
        {"{\"schema\": 2}", MANIFEST, "metadata.json: it has no report_id"},
        {"{\"schema\": 2, \"report_id\": 5}", MANIFEST, "metadata.json: it has no report_id"},
        {"{\"schema\": \"1\", \"report_id\": \"0a\"}", MANIFEST, "which schema it has"},
        {"{\"schema\": 0, \"report_id\": \"0a\"}", MANIFEST, "which schema it has"},
        {"{\"schema\": 2, \"schema\": 2, \"report_id\": \"0a\"}", MANIFEST, "metadata.json: line"},
        {METADATA, "", "manifest.json: line 1, column 1"},
        {METADATA, "{\"schema\": 2, \"report_id\": \"0b\", \"artefacts\": []}", "another report"},
        {METADATA, "{\"schema\": 2, \"artefacts\": []}", "another report"},
        {METADATA, "{\"schema\": 2, \"report_id\": \"0a\"}", "it lists no artefacts"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        made_member given[] = {{"a", "", false}, {NULL, NULL, false}, {NULL, NULL, false}};
        size_t count = 1;
        bp_report_file *report = NULL;
        if (cases[i].metadata != NULL) {
            given[count++] = (made_member){"metadata.json", cases[i].metadata, false};
        }
        if (cases[i].manifest != NULL) {
            given[count++] = (made_member){"manifest.json", cases[i].manifest, false};
        }
        cr_expect(eq(int, open_made(given, count, &report, &failure), BUGPACK_ERR_CORRUPT), "%s",
                  cases[i].why);
        cr_expect(strstr(failure.message, cases[i].why) != NULL, "<%s>: %s", failure.message,
                  cases[i].why);
        cr_expect(eq(ptr, report, NULL));
    }
}

Test(report_file, refuses_the_report_of_another_version_as_such) {
    static const char *const schemas[][2] = {{"3", "a later"}, {"1", "an older"}};
    for (size_t i = 0; i < sizeof schemas / sizeof schemas[0]; i++) {
        char text[64], expected[160];
        const made_member other[] = {{"metadata.json", text, false}, members[2]};
        bp_report_file *report = NULL;
        (void)snprintf(text, sizeof text, "{\"schema\": %s, \"report_id\": \"0a\"}", schemas[i][0]);
        (void)snprintf(expected, sizeof expected,
                       "\"t.zip\" was written by %s bugpack: metadata.json has schema %s, and this "
                       "one reads schema 2",
                       schemas[i][1], schemas[i][0]);
        cr_expect(eq(int, open_made(other, 2, &report, &failure), BUGPACK_ERR_UNSUPPORTED));
        cr_expect(eq(str, failure.message, expected));
    }
}

/* What a pipe with these bytes gives, as BUGPACK_OK with a descriptor or a failure. */
static bugpack_status copy_pipe(size_t byte_count, uint64_t max_bytes, int *ret_fd,
                                bugpack_error *error) {
    static const char bytes[4096] = {'P', 'K'};
    int ends[2];
    cr_assert(eq(int, pipe(ends), 0));
    cr_assert(eq(sz, (size_t)write(ends[1], bytes, byte_count), byte_count));
    (void)close(ends[1]);
    bugpack_status status = bp_report_input_copy(ends[0], max_bytes, ret_fd, error);
    (void)close(ends[0]);
    return status;
}

Test(report_file, copies_an_input_that_just_fits_and_refuses_one_byte_more) {
    char bytes[8];
    int fd = -1;
    cr_assert(copy_pipe(4096, 4096, &fd, &failure) == BUGPACK_OK, "%s", failure.message);
    cr_expect(eq(int, lseek(fd, 0, SEEK_CUR), 0));
    cr_expect(eq(int, lseek(fd, 0, SEEK_END), 4096));
    cr_expect(eq(int, pread(fd, bytes, 2, 0), 2));
    cr_expect(eq(int, memcmp(bytes, "PK", 2), 0));
    (void)close(fd);
    fd = -7;
    cr_expect(copy_pipe(4096, 4095, &fd, &failure) == BUGPACK_ERR_LIMIT);
    cr_expect(
        eq(str, failure.message, "cannot copy standard input: it is over the limit of 4095 bytes"));
    cr_expect(copy_pipe(0, 4096, &fd, &failure) == BUGPACK_ERR_CORRUPT);
    cr_expect(eq(int, fd, -7), "a failure set it");
}
