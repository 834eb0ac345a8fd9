#include "unit/made_report.h"

#include "archive/sha256.h"
#include "entries/verify.h"
#include "unit/quick_session.h"

const char made_report_id[33] = "0123456789abcdef0123456789abcdef";
static const char record[] =
    "{\"seq\": 1, \"time\": \"2026-11-21T08:36:51.123456Z\", \"monotonic_ns\": 1, "
    "\"level\": \"info\", \"tid\": 1, \"thread\": \"t\", \"message\": \"m\"}\n";

const char *made_report_faults(const void *bytes, size_t byte_count, uint64_t max_bytes) {
    static char faults[4096];
    bp_verify_result result;
    int fd = made_zip_file(bytes, byte_count);
    cr_assert(ge(int, fd, 0));
    cr_assert(eq(int, bp_verify(fd, max_bytes, &result, &failure), BUGPACK_OK), "%s",
              failure.message);
    (void)snprintf(faults, sizeof faults, "%s", bp_buffer_text(&result.faults));
    cr_expect(eq(int, result.fault_count > 0, faults[0] != '\0'));
    bp_verify_release(&result);
    (void)close(fd);
    return faults;
}

void made_report_list(made_report *report, const char *name, const char *content) {
    char sha256[BP_SHA256_TEXT_BYTES];
    struct sha256_ctx hash;
    sha256_init(&hash);
    sha256_update(&hash, strlen(content), (const uint8_t *)content);
    bp_sha256_print(&hash, sha256);
    (void)bp_buffer_printf(&report->manifest,
                           "%s{\"name\": \"%s\", \"status\": \"ok\", \"bytes\": %zu, "
                           "\"duration_ms\": 1, \"sha256\": \"%s\"}",
                           report->manifest.data[report->manifest.size - 1] == '[' ? "" : ", ",
                           name, strlen(content), sha256);
}

void made_report_add(made_report *report, const char *name, const char *content) {
    report->members[report->count++] = (made_member){name, content, strlen(content) > 200};
}

void made_report_begin(made_report *report) {
    static char metadata[8192];
    open_session();
    take(NULL);
    char *text = report_read(taken.path, "metadata.json", NULL);
    cr_assert(ne(ptr, text, NULL));
    char *at = strstr(text, "\"report_id\": \"");
    cr_assert(ne(ptr, at, NULL));
    memcpy(at + strlen("\"report_id\": \""), made_report_id, sizeof made_report_id - 1);
    (void)snprintf(metadata, sizeof metadata, "%s", text);
    free(text);
    *report = (made_report){.count = 0};
    bp_buffer_init(&report->manifest, 1 << 16);
    (void)bp_buffer_printf(&report->manifest,
                           "{\"schema\": 2, \"report_id\": \"%s\", \"complete\": true, "
                           "\"missing\": 0, \"artefacts\": [",
                           made_report_id);
    made_report_add(report, "metadata.json", metadata);
    made_report_list(report, "metadata.json", metadata);
}

static void end(made_report *report, bool is_stored, made_zip *ret_zip) {
    (void)bp_buffer_append_text(&report->manifest, "]}");
    made_report_add(report, "manifest.json", bp_buffer_text(&report->manifest));
    for (size_t i = 0; is_stored && i < report->count; i++) {
        report->members[i].is_deflated = false;
    }
    made_zip_build(ret_zip, report->members, report->count);
    bp_buffer_release(&report->manifest);
}

void made_report_end(made_report *report, made_zip *ret_zip) {
    end(report, false, ret_zip);
}

void made_report_sound(made_zip *ret_zip) {
    made_report report;
    made_report_begin(&report);
    made_report_add(&report, "logs.jsonl", record);
    made_report_list(&report, "logs.jsonl", record);
    end(&report, true, ret_zip); /* two deflated streams may be one content */
    const bp_buffer *bytes = &ret_zip->bytes;
    cr_assert(eq(str, made_report_faults(bytes->data, bytes->size, BP_VERIFY_MAX_BYTES), ""));
}
