/*
 * Whether a report is whole: what a taken one is, and every way in which one is not.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "inspect/verify.h"
#include "unit/made_report.h"
#include "unit/taken_report.h"

TestSuite(verify, .init = setup, .fini = teardown);

/* Ends the manifest, and says what is wrong with the whole. */
static const char *finish(made_report *report) {
    made_zip zip;
    made_report_end(report, &zip);
    const char *faults = made_report_faults(zip.bytes.data, zip.bytes.size, BP_VERIFY_MAX_BYTES);
    made_zip_release(&zip);
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
    bp_verify_release(&result);
    (void)close(fd);
}

Test(verify, a_made_report_is_whole) {
    made_report report;
    made_report_begin(&report);
    made_report_add(&report, "logs.jsonl", made_report_record);
    made_report_list(&report, "logs.jsonl", made_report_record, "=");
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
        made_report_begin(&report);
        made_report_add(&report, "x", "actual");
        made_report_list(&report, cases[i].name, cases[i].listed, cases[i].sha256);
        expect_fault(finish(&report), cases[i].why);
    }
}

Test(verify, an_older_manifest_without_any_sha256_is_no_fault) {
    made_report report;
    made_zip zip;
    bp_verify_result result;
    made_report_begin(&report);
    report.manifest.size = (size_t)(strchr(report.manifest.data, '[') - report.manifest.data) + 1;
    report.manifest.data[report.manifest.size] = '\0';
    made_report_list(&report, "metadata.json", report.members[0].content, "");
    made_report_end(&report, &zip);
    int fd = made_zip_file(zip.bytes.data, zip.bytes.size);
    cr_assert(eq(int, bp_verify(fd, BP_VERIFY_MAX_BYTES, &result, NULL), BUGPACK_OK));
    cr_expect(eq(str, (char *)bp_buffer_text(&result.faults), ""));
    cr_expect(result.lacks_sha256);
    bp_verify_release(&result);
    (void)close(fd);
    made_zip_release(&zip);
}

Test(verify, names_the_place_where_json_is_broken) {
    static const struct {
        const char *name, *content, *why;
    } cases[] = {
        {"logs.jsonl", "{}",
         "entry \"logs.jsonl\": line 1, column 3: expected the end of the line"},
        {"logs.jsonl", "{}\n[}\n", "entry \"logs.jsonl\": line 2, column 2"},
        {"session.json", "{\"a\": 1, \"a\": 2}", "line 1, column 10: this key was there before"},
        {"session.json", "{\"a\": 01}", "line 1, column 7: a number must not begin with 0"},
        {"channel-state.json", "", "there is no text"},
        {"processes/7-x/heap-state.json", "[", "entry \"processes/7-x/heap-state.json\": line 1"},
        {"stacks.json", "{", "entry \"stacks.json\": line 1, column 2"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        made_report report;
        made_report_begin(&report);
        made_report_add(&report, cases[i].name, cases[i].content);
        made_report_list(&report, cases[i].name, cases[i].content, "=");
        expect_fault(finish(&report), cases[i].why);
    }
    made_report report;
    made_report_begin(&report);
    made_report_add(&report, "attached.json", "no JSON at all");
    made_report_list(&report, "attached.json", "no JSON at all", "=");
    made_report_add(&report, "processes/7-x/logs/metadata.json", "a line");
    made_report_list(&report, "processes/7-x/logs/metadata.json", "a line", "=");
    cr_expect(eq(str, (char *)finish(&report), ""), "an attached file and a log may be anything");
}

Test(verify, refuses_a_manifest_that_is_none) {
    static const struct {
        const char *text, *why;
    } cases[] = {{"{", "entry \"manifest.json\": line 1, column 2"},
                 {"{}", "entry \"manifest.json\": it does not say which schema it has"},
                 {"[]", "entry \"manifest.json\": it does not say which schema it has"},
                 {"{\"schema\": 2}", "entry \"manifest.json\": it has no list of artefacts"},
                 {"{\"schema\": 3}", "a later bugpack wrote it"},
                 {NULL, "entry \"manifest.json\": it is not there"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const made_member members[] = {{"a", "b", false}, {"manifest.json", cases[i].text, false}};
        made_zip zip;
        made_zip_build(&zip, members, cases[i].text != NULL ? 2 : 1);
        expect_fault(made_report_faults(zip.bytes.data, zip.bytes.size, BP_VERIFY_MAX_BYTES),
                     cases[i].why);
        made_zip_release(&zip);
    }
}

Test(verify, notices_metadata_of_another_report) {
    made_report report;
    made_report_begin(&report);
    char *at = strstr(report.manifest.data, made_report_id);
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
    const char *faults = made_report_faults(zip.bytes.data, zip.bytes.size, BP_VERIFY_MAX_BYTES);
    expect_fault(faults, "entry \"a\" has a wrong checksum");
    expect_fault(faults, "entry \"c\" has a wrong checksum");
    cr_expect(strstr(faults, "\"b\"") == NULL, "%s", faults);
    made_zip_release(&zip);
}

Test(verify, stops_before_more_bytes_than_are_allowed) {
    static const made_member members[] = {{"a", "0123456789", false}, {"b", "0123456789", true}};
    made_zip zip;
    made_zip_build(&zip, members, 2);
    expect_fault(made_report_faults(zip.bytes.data, zip.bytes.size, 19),
                 "it holds 20 bytes, over the limit");
    expect_fault(made_report_faults(zip.bytes.data, zip.bytes.size, 20),
                 "\"manifest.json\": it is not there");
    made_zip_release(&zip);
}

Test(verify, no_report_that_is_cut_is_whole) {
    made_zip zip;
    made_report_sound(&zip);
    for (size_t size = 0; size < zip.bytes.size; size++) {
        const char *faults = made_report_faults(zip.bytes.data, size, BP_VERIFY_MAX_BYTES);
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

static bool is_sound(const made_zip *zip) {
    return made_report_faults(zip->bytes.data, zip->bytes.size, BP_VERIFY_MAX_BYTES)[0] == '\0';
}

/* Every bit of the headers, and one of each other byte. */
Test(verify, no_report_with_a_flipped_bit_is_whole) {
    made_zip zip;
    made_report_sound(&zip);
    for (size_t at = 0; at < zip.bytes.size; at++) {
        bool is_header = at >= zip.directory;
        for (size_t i = 0; i < 3; i++) {
            is_header = is_header || at - zip.local[i] < 30;
        }
        for (size_t bit = is_header ? 0 : at % 8; bit <= (is_header ? 7 : at % 8); bit++) {
            zip.bytes.data[at] = (char)(zip.bytes.data[at] ^ 1 << bit);
            cr_expect(is_ignored(&zip, at) || !is_sound(&zip), "bit %zu of byte %zu", bit, at);
            zip.bytes.data[at] = (char)(zip.bytes.data[at] ^ 1 << bit);
        }
    }
    made_zip_release(&zip);
}

/* As after a power cut. */
Test(verify, no_report_with_a_hole_or_a_zeroed_end_is_whole) {
    made_zip zip;
    char hole[16];
    made_report_sound(&zip);
    for (size_t at = 0; at + sizeof hole <= zip.bytes.size; at += 8) {
        bool is_seen = false;
        memcpy(hole, zip.bytes.data + at, sizeof hole);
        for (size_t i = 0; i < sizeof hole; i++) {
            is_seen = is_seen || (hole[i] != 0 && !is_ignored(&zip, at + i));
        }
        memset(zip.bytes.data + at, 0, sizeof hole);
        cr_expect(eq(int, is_sound(&zip), !is_seen), "at %zu", at);
        memcpy(zip.bytes.data + at, hole, sizeof hole);
    }
    size_t zeroed = 1; /* the end of a small zip is zero anyway */
    while (zip.bytes.data[zip.bytes.size - zeroed] == 0) {
        zeroed++;
    }
    cr_assert(lt(sz, zeroed, 14));
    for (; zeroed <= zip.bytes.size; zeroed++) {
        memset(zip.bytes.data + zip.bytes.size - zeroed, 0, zeroed);
        cr_expect(not(is_sound(&zip)), "the last %zu bytes", zeroed);
    }
    made_zip_release(&zip);
}
