/*
 * Every allocation of indexing a report fails in turn, alone and with all that follow. There is the
 * whole line or a failure, never another line.
 */
#include <stdio.h>
#include <string.h>

#include "facts/facts.h"
#include "support/check.h"
#include "support/failing_malloc.h"
#include "support/made_zip.h"
#include "support/temp_dir.h"

#define ID "\"report_id\": \"01234567-89ab-cdef-0123-456789abcdef\""

static const made_member members[] = {
    {"metadata.json", "{\"schema\": 2, " ID ", \"tags\": {\"a\": \"b\"}, \"gap_key\": \"k\"}",
     true},
    {"manifest.json",
     "{\"schema\": 2, " ID ", \"complete\": true, \"artefacts\": [],"
     "\"triggers\": [{\"report_type\": \"pedantic\", \"key\": \"k\", \"count\": 1}]}",
     true},
    {"runtime-metrics.json",
     "{\"process\": {\"cpu_percent\": 99}, \"threads\": [{\"tid\": 1, \"name\": \"a\", "
     "\"cpu_percent\": 90}, {\"tid\": 2, \"name\": \"a\", \"cpu_percent\": 9}]}",
     true},
    {"threads.json",
     "{\"deadlocks\": [{\"description\": \"a and a\", \"tids\": [1, 2]}], "
     "\"threads\": [{\"tid\": 1, \"name\": \"a\"}, {\"tid\": 2, \"name\": \"a\"}]}",
     true}};

int main(void) {
    temp_dir dir;
    made_zip zip;
    char path[sizeof dir.path + 16];
    bp_buffer good;
    CHECK(temp_dir_make(&dir));
    (void)snprintf(path, sizeof path, "%s/a.zip", dir.path);
    made_zip_build(&zip, members, sizeof members / sizeof members[0]);
    CHECK(temp_dir_write(&dir, "a.zip", zip.bytes.data, zip.bytes.size));
    bp_buffer_init(&good, 1 << 16);
    CHECK(bp_index_line(path, zip.bytes.size, &good, NULL) == BUGPACK_OK);
    CHECK(strstr(bp_buffer_text(&good), "\"thread_cpu_percents\": [99]") != NULL);
    for (int and_all_later = 0; and_all_later < 2; and_all_later++) {
        unsigned long tried, nth = 0, failed = 0;
        bugpack_status status;
        do {
            bugpack_error error = BUGPACK_ERROR_INIT;
            bp_buffer line;
            bp_buffer_init(&line, 1 << 16);
            nth++;
            failing_malloc_arm(nth, and_all_later != 0);
            status = bp_index_line(path, zip.bytes.size, &line, &error);
            tried = failing_malloc_disarm();
            failed += status != BUGPACK_OK;
            bool is_same = line.size == good.size && memcmp(line.data, good.data, line.size) == 0;
            CHECK(status != BUGPACK_OK || is_same);
            bp_buffer_release(&line);
        } while (tried >= nth);
        CHECK(status == BUGPACK_OK && failed > 20);
        (void)printf("%s: %lu of %lu turns failed\n",
                     and_all_later ? "one and all later" : "one allocation", failed, nth);
    }
    bp_buffer_release(&good);
    made_zip_release(&zip);
    temp_dir_remove(&dir);
    return 0;
}
