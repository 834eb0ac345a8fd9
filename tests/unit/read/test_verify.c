/*
 * Whether a report is whole. Ways in which one is not are in fixtures/hostile.
 */
#include "entries/verify.h"
#include "unit/made_report.h"
#include "unit/quick_session.h"

TestSuite(verify, .init = setup, .fini = teardown);

static bool is_sound(const made_zip *zip) {
    return made_report_faults(zip->bytes.data, zip->bytes.size, BP_VERIFY_MAX_BYTES)[0] == '\0';
}

static void expect_fault(const char *faults, const char *wanted) {
    cr_expect(strstr(faults, wanted) != NULL, "<%s> does not say <%s>", faults, wanted);
}

Test(verify, an_attached_file_and_a_log_may_be_anything) {
    made_report report;
    CLEANUP(made_zip_release) made_zip zip;
    made_report_begin(&report);
    made_report_add(&report, "attached.json", "no JSON at all");
    made_report_list(&report, "attached.json", "no JSON at all");
    made_report_add(&report, "processes/7-x/logs/metadata.json", "a line");
    made_report_list(&report, "processes/7-x/logs/metadata.json", "a line");
    made_report_end(&report, &zip);
    cr_expect(is_sound(&zip));
}

Test(verify, names_the_entry_whose_bytes_are_damaged_and_goes_on) {
    static const made_member members[] = {
        {"a", "one", false}, {"b", "two", false}, {"c", "three", false}};
    CLEANUP(made_zip_release) made_zip zip;
    made_zip_build(&zip, members, 3);
    zip.bytes.data[zip.local[0] + 31] ^= 1;
    zip.bytes.data[zip.local[2] + 31] ^= 1;
    const char *faults = made_report_faults(zip.bytes.data, zip.bytes.size, BP_VERIFY_MAX_BYTES);
    expect_fault(faults, "entry \"a\" has a wrong checksum");
    expect_fault(faults, "entry \"c\" has a wrong checksum");
    cr_expect(strstr(faults, "\"b\"") == NULL, "%s", faults);
}

Test(verify, no_report_that_is_cut_is_whole) {
    CLEANUP(made_zip_release) made_zip zip;
    made_report_sound(&zip);
    for (size_t size = 0; size < zip.bytes.size; size++) {
        const char *faults = made_report_faults(zip.bytes.data, size, BP_VERIFY_MAX_BYTES);
        cr_expect(strcmp(faults, "it is no zip, or its end is missing") == 0, "%zu: %s", size,
                  faults);
    }
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

/* Every bit of the headers, and one of each other byte. */
Test(verify, no_report_with_a_flipped_bit_is_whole) {
    CLEANUP(made_zip_release) made_zip zip;
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
}

Test(verify, names_sixteen_faults_and_counts_the_others) {
    made_report report;
    CLEANUP(made_zip_release) made_zip zip;
    char name[] = "a"; /* the lines of a manifest are sorted */
    made_report_begin(&report);
    for (; name[0] <= 's'; name[0]++) {
        made_report_list(&report, name, "");
    }
    made_report_end(&report, &zip);
    const char *faults = made_report_faults(zip.bytes.data, zip.bytes.size, BP_VERIFY_MAX_BYTES);
    expect_fault(faults, "\"p\"");
    expect_fault(faults, "; and 3 more");
    cr_expect(strstr(faults, "\"q\"") == NULL, "%s", faults);
}

/* As after a power cut. */
Test(verify, no_report_with_a_hole_or_a_zeroed_end_is_whole) {
    CLEANUP(made_zip_release) made_zip zip;
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
}
