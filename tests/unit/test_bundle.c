/*
 * Artefacts whose content lies in a spool become entries and lines of the ledger like any other.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "report/bundle.h"
#include "report/provider.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

static temp_dir dir;
static char text[700000];

static void set_up(void) {
    cr_assert(temp_dir_make(&dir));
    for (size_t i = 0; i < sizeof text; i++) {
        text[i] = (char)('a' + (i * i) % 23 + i % 3);
    }
}

static void tear_down(void) {
    temp_dir_remove(&dir);
}

TestSuite(bundle, .init = set_up, .fini = tear_down);

static void spool_into(bugpack_writer *writer, size_t byte_count, uint64_t max_bytes) {
    bp_writer_init(writer, 0);
    cr_assert(eq(int, bp_temp_file_open(&writer->temp_file, dir.fd, max_bytes, NULL), 0));
    (void)bp_temp_file_write(&writer->temp_file, text, byte_count);
}

static void add(bp_bundle *bundle, const char *name, bugpack_writer *writer) {
    cr_assert(eq(int, bp_bundle_add(bundle, name, writer, NULL), 0));
    cr_expect(not(bp_temp_file_is_open(&writer->temp_file)));
    bp_writer_release(writer);
}

/* Publishes and frees the bundle; the path of the zip. */
static const char *publish(bp_bundle *bundle) {
    static char path[600];
    char name[256];
    uint64_t zip_bytes = 0;
    bp_publication publication = {.dir_fd = dir.fd,
                                  .dir_name = dir.path,
                                  .stem = "report",
                                  .extension = ".zip",
                                  .report_id = "00000000000000000000000000000000",
                                  .wall_ns = 1774751400000000000u};
    bugpack_error error = BUGPACK_ERROR_INIT;
    cr_assert(bp_bundle_publish(bundle, &publication, name, sizeof name, &zip_bytes, &error) ==
                  BUGPACK_OK,
              "%s", error.message);
    bp_bundle_free(bundle);
    cr_expect(eq(sz, temp_dir_count(&dir), 1));
    (void)snprintf(path, sizeof path, "%s/%s", dir.path, name);
    return path;
}

static void expect_entry(const char *path, const char *name, size_t byte_count) {
    size_t bytes = SIZE_MAX;
    char *entry = report_read(path, name, &bytes);
    cr_expect(ne(ptr, entry, NULL), "%s", name);
    cr_expect(eq(sz, bytes, byte_count), "%s", name);
    cr_expect(entry != NULL && memcmp(entry, text, byte_count) == 0, "%s", name);
    free(entry);
}

Test(bundle, spools_are_entries_with_their_bytes_in_the_ledger) {
    bp_bundle *bundle = bp_bundle_new();
    bugpack_writer writer;
    static const size_t sizes[] = {0, 1, 70000, sizeof text};
    for (size_t i = 0; i < 4; i++) {
        char name[8];
        (void)snprintf(name, sizeof name, "s%zu", i);
        spool_into(&writer, sizes[i], UINT64_MAX);
        add(bundle, name, &writer);
    }
    bp_writer_init(&writer, sizeof text);
    cr_assert(eq(int, bugpack_write(&writer, text, 1234), 0));
    add(bundle, "buffer", &writer);
    const char *path = publish(bundle);
    expect_entry(path, "s0", 0);
    expect_entry(path, "s1", 1);
    expect_entry(path, "s2", 70000);
    expect_entry(path, "s3", sizeof text);
    expect_entry(path, "buffer", 1234);
    cr_expect(report_entry_contains(path, "manifest.json", "\"bytes\": 70000"));
    cr_expect(report_entry_contains(path, "manifest.json", "\"bytes\": 700000"));
    cr_expect(report_entry_contains(path, "manifest.json", "\"complete\": true"));
}

Test(bundle, a_spool_that_failed_costs_its_artefact_alone) {
    bp_bundle *bundle = bp_bundle_new();
    bugpack_writer writer;
    spool_into(&writer, 100, 99);
    add(bundle, "limit", &writer);
    spool_into(&writer, 100, UINT64_MAX);
    int full = open("/dev/full", O_RDWR | O_CLOEXEC);
    cr_assert(ge(int, full, 0));
    (void)close(writer.temp_file.fd);
    writer.temp_file.fd = full;
    add(bundle, "full", &writer);
    spool_into(&writer, 100, 100);
    add(bundle, "good", &writer);
    char missing[300];
    cr_expect(eq(uint, bp_bundle_missing(bundle, missing, sizeof missing), 2));
    cr_expect(strstr(missing, "limit: it is over the limit of 99 bytes\n") != NULL, "%s", missing);
    cr_expect(strstr(missing, "No space left on device") != NULL, "%s", missing);
    const char *path = publish(bundle);
    char *list = report_list(path);
    cr_assert(ne(ptr, list, NULL));
    cr_expect(eq(str, list, "good\nmanifest.json\n"));
    free(list);
    expect_entry(path, "good", 100);
}

Test(bundle, a_refused_or_truncated_spool_is_out_or_in_as_a_buffer_is) {
    bp_bundle *bundle = bp_bundle_new();
    bugpack_writer writer;
    spool_into(&writer, 100, 100);
    bp_writer_refuse(&writer, BP_ARTEFACT_FAILED, "no");
    cr_expect(not(bp_temp_file_is_open(&writer.temp_file)));
    add(bundle, "refused", &writer);
    spool_into(&writer, 0, 100);
    bp_writer_truncate(&writer, false, "some");
    add(bundle, "cut", &writer);
    const char *path = publish(bundle);
    char *list = report_list(path);
    cr_assert(ne(ptr, list, NULL));
    cr_expect(eq(str, list, "cut\nmanifest.json\n"));
    free(list);
}

static int spool_text(bugpack_writer *writer, void *context) {
    const size_t *byte_count = context;
    if (bp_temp_file_open(&writer->temp_file, dir.fd, UINT64_MAX, NULL) != BUGPACK_OK) {
        return -1;
    }
    return bp_temp_file_write(&writer->temp_file, text, *byte_count);
}

Test(bundle, a_provider_may_spool_and_standard_input_stays_open) {
    size_t byte_count = 300000;
    bp_provider_spec spec = {.name = "big",
                             .form = BP_CONTENT_BYTES,
                             .provide = spool_text,
                             .context = &byte_count,
                             .timeout_ms = 60000};
    bp_provider *provider = NULL;
    bp_runner *runner = NULL;
    cr_assert(eq(int, bp_provider_new(&spec, &provider, NULL), 0));
    cr_assert(eq(int, bp_runner_new(&runner, NULL), 0));
    bp_bundle *bundle = bp_bundle_new();
    bool had_input = fcntl(STDIN_FILENO, F_GETFD) >= 0;
    if (!had_input) {
        cr_assert(eq(int, open("/dev/null", O_RDONLY), STDIN_FILENO));
    }
    for (unsigned i = 0; i < 2; i++) {
        bugpack_writer writer;
        bp_writer_init(&writer, 1000);
        cr_assert(bp_runner_call(runner, provider, NULL, &writer));
        add(bundle, i == 0 ? "one" : "two", &writer);
    }
    bp_runner_free(runner);
    bp_provider_drop(provider);
    const char *path = publish(bundle);
    cr_expect(ge(int, fcntl(STDIN_FILENO, F_GETFD), 0));
    expect_entry(path, "one", byte_count);
    expect_entry(path, "two", byte_count);
}
