/*
 * The file of a session's identity: this version's, and nothing else.
 */
#include "recorder/session_files.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "support/temp_dir.h"
#include "unit/unit.h"

enum { header_bytes = 16, at_version = 8, at_size = 12 };

static const bp_session_identity written = {.session_id = "0123456789abcdef0123456789abcdef",
                                            .app_name = "viewer",
                                            .report_dir = "/reports",
                                            .pid = 4711,
                                            .boot_id = "b",
                                            .ring_kinds = 5,
                                            .machine = "desk-17"};
static temp_dir dir;
static char *file;
static size_t file_bytes;

static void set_up(void) {
    cr_assert(temp_dir_make(&dir));
    file = bp_session_identity_seal(&written, &file_bytes);
    cr_assert(file != NULL);
}

static void tear_down(void) {
    free(file);
    temp_dir_remove(&dir);
}

TestSuite(session_files, .init = set_up, .fini = tear_down);

static bugpack_status read_back(bp_session_identity *ret_identity) {
    cr_assert(temp_dir_write(&dir, BP_SESSION_IDENTITY_NAME, file, file_bytes));
    return bp_session_identity_read(dir.fd, ret_identity, NULL);
}

/* With `identity_bytes` of the identity and a check that is right. */
static void make_version(uint32_t version, size_t identity_bytes) {
    uint64_t check = XXH3_64bits(file + header_bytes, identity_bytes);
    file_bytes = header_bytes + identity_bytes + sizeof check;
    uint32_t size = (uint32_t)file_bytes;
    memcpy(file + at_version, &version, sizeof version);
    memcpy(file + at_size, &size, sizeof size);
    memcpy(file + header_bytes + identity_bytes, &check, sizeof check);
}

Test(session_files, identity_is_read_as_it_was_written) {
    bp_session_identity identity;
    cr_assert(zero(int, read_back(&identity)));
    cr_expect(eq(str, identity.machine, "desk-17"));
    cr_expect(eq(u32, identity.ring_kinds, 5u));
}

Test(session_files, other_versions_sizes_and_bytes_are_refused) {
    static const struct {
        uint32_t version;
        size_t bytes;
    } wrong[] = {{2, sizeof(bp_session_identity)},
                 {4, sizeof(bp_session_identity)},
                 {3, sizeof(bp_session_identity) - 8},
                 {3, 0}};
    bp_session_identity identity;
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        make_version(wrong[i].version, wrong[i].bytes);
        cr_expect(eq(int, read_back(&identity), BUGPACK_ERR_CORRUPT), "row %zu", i);
    }
    make_version(3, sizeof(bp_session_identity));
    cr_assert(zero(int, read_back(&identity)));
    file[header_bytes + sizeof(bp_session_identity) - 12] ^= 1;
    cr_expect(eq(int, read_back(&identity), BUGPACK_ERR_CORRUPT));
}
