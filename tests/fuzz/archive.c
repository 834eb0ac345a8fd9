/*
 * A libFuzzer target for zips that somebody else wrote: what opens is read to its end, and
 * verified. Begin with a few small reports in the corpus, because no fuzzer guesses two headers
 * that agree.
 */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "archive/reader.h"
#include "base/utf8.h"
#include "entries/verify.h"
#include "fuzz/require.h"
#include "support/made_zip.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t byte_count);

static const uint64_t entry_max_bytes = (uint64_t)1 << 20;

/* What the sink was given, against what was declared. */
static bugpack_status count(void *context, const void *bytes, size_t byte_count) {
    require(bytes != NULL && byte_count > 0);
    *(uint64_t *)context += byte_count;
    return BUGPACK_OK;
}

static void read_entry(bp_archive_reader *reader, size_t index) {
    bp_archive_member member = bp_archive_reader_member(reader, index);
    uint64_t given = 0;
    size_t found;
    require(bp_utf8_is_valid(member.name, strlen(member.name)));
    require(member.name[0] != '/' && strstr(member.name, "../") == NULL);
    require(bp_archive_reader_find(reader, member.name, &found) && found == index);
    bugpack_status status =
        bp_archive_reader_read(reader, index, entry_max_bytes, count, &given, NULL);
    require(given <= member.bytes && given <= entry_max_bytes);
    require(status != BUGPACK_OK || given == member.bytes);
}

/* Whatever it is, that can be said. Faults are text that a terminal can show after escaping. */
static void verify(int fd) {
    bp_verify_result result;
    require(bp_verify(fd, entry_max_bytes, &result, NULL) == BUGPACK_OK);
    require((result.fault_count > 0) == (result.faults.size > 0));
    bp_verify_release(&result);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t byte_count) {
    bp_archive_reader *reader = NULL;
    int fd = made_zip_file(data, byte_count);
    require(fd >= 0);
    if (bp_archive_reader_open(fd, "input", &reader, NULL) == BUGPACK_OK) {
        for (size_t i = 0; i < bp_archive_reader_count(reader); i++) {
            read_entry(reader, i);
        }
    }
    bp_archive_reader_free(reader);
    verify(fd);
    (void)close(fd);
    return 0;
}
