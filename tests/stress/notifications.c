/*
 * Threads that notify at once, of the same and of different things, while a reader copies and one
 * of them closes: each call that was taken is counted once. Run under ThreadSanitizer too.
 */
#include "recorder/notifications.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "support/check.h"
#include "support/temp_dir.h"

enum { writer_count = 8, add_count = 20000 };

static bp_notifications *notifications;
static bp_ring *ring;
static temp_dir dir;
static atomic_bool must_stop;

static void *notify(void *argument) {
    unsigned number = (unsigned)(uintptr_t)argument;
    for (unsigned i = 0; i < add_count; i++) {
        char text[32];
        int length = snprintf(text, sizeof text, "thing %u", i % 2 == 0 ? 99 : number);
        bp_notifications_add(notifications, bp_clock_monotonic_ns(), BUGPACK_LEVEL_INFO, "stress",
                             text, (size_t)length);
    }
    return NULL;
}

/*
 * The sum of all counts. With `whole`, every one that is told has its text: that cannot be asked of
 * a copy which eight threads overtake while its own thread waits for a core.
 */
static unsigned long long read_all(bool whole) {
    bp_temp_file records;
    bp_ring_view view;
    bp_buffer out;
    bp_buffer_init(&out, 1 << 20);
    CHECK(bp_temp_file_open(&records, dir.fd, UINT64_MAX, NULL) == BUGPACK_OK);
    CHECK(bp_ring_copy(ring, UINT64_MAX, bp_temp_file_sink, &records, &view, NULL) == BUGPACK_OK);
    CHECK(bp_temp_file_flush(&records, NULL) == BUGPACK_OK);
    CHECK(bp_notifications_print(&records, 0, &out, NULL) == BUGPACK_OK);
    unsigned long long sum = 0;
    unsigned count = 0, text_count = 0;
    const char *at = bp_buffer_text(&out);
    while ((at = strstr(at, "\"count\": ")) != NULL) {
        unsigned long long told = 0;
        CHECK(sscanf(at, "\"count\": %llu", &told) == 1);
        sum += told;
        count++;
        at++;
    }
    at = bp_buffer_text(&out);
    while ((at = strstr(at, "\"text\": \"thing ")) != NULL) {
        text_count++;
        at++;
    }
    CHECK(text_count == count || (!whole && text_count < count));
    bp_buffer_release(&out);
    bp_temp_file_release(&records);
    return sum;
}

static void *read_on(void *argument) {
    (void)argument;
    while (!atomic_load(&must_stop)) {
        CHECK(read_all(false) <= (unsigned long long)writer_count * add_count);
    }
    return NULL;
}

int main(void) {
    CHECK(temp_dir_make(&dir));
    CHECK(bp_ring_new(bp_notifications_ring_bytes(), &ring, NULL) == BUGPACK_OK);
    CHECK(bp_notifications_new(ring, &notifications, NULL) == BUGPACK_OK);
    pthread_t writers[writer_count], reader;
    CHECK(pthread_create(&reader, NULL, read_on, NULL) == 0);
    for (uintptr_t i = 0; i < writer_count; i++) {
        CHECK(pthread_create(&writers[i], NULL, notify, (void *)i) == 0);
    }
    for (unsigned i = 0; i < writer_count; i++) {
        CHECK(pthread_join(writers[i], NULL) == 0);
    }
    atomic_store(&must_stop, true);
    CHECK(pthread_join(reader, NULL) == 0);
    CHECK(read_all(true) == (unsigned long long)writer_count * add_count);
    pthread_t late;
    CHECK(pthread_create(&late, NULL, notify, NULL) == 0);
    bp_notifications_close(notifications);
    CHECK(pthread_join(late, NULL) == 0);
    bp_notifications_free(notifications);
    printf("%d notifications, all counted once\n", writer_count * add_count);
    temp_dir_remove(&dir);
    return 0;
}
