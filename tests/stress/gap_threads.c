/*
 * Many gaps from eight threads: each distinct key leads to one report, the sums are exact, and
 * what came over the caps is counted. Threads also switch the mode off and on, ask where it stands
 * and trigger reports. Run under ThreadSanitizer too.
 */
#include <bugpack/bugpack.h>

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/temp_dir.h"

enum { thread_count = 8, key_count = 40 };

static bugpack_session *session;
static unsigned gaps_each;
static atomic_bool must_stop;
static atomic_uint state_count;
static pthread_barrier_t start;

static int tell_state(bugpack_writer *writer, void *context) {
    atomic_fetch_add(&state_count, 1);
    return (int)bugpack_printf(writer, "{\"thread\": %u}", *(const unsigned *)context);
}

static void *meet_gaps(void *argument) {
    unsigned number = *(const unsigned *)argument;
    char key[64];
    (void)pthread_barrier_wait(&start);
    for (unsigned i = 0; i < gaps_each; i++) {
        unsigned which = (i * 7 + number) % key_count;
        (void)snprintf(key, sizeof key, "channel-%u:unimpl:%u", which / 10, which);
        if (i % 2 == 0) {
            bugpack_gap(session, key);
        } else {
            bugpack_gap_with_state(session, key, tell_state, argument);
        }
    }
    return NULL;
}

/* What a host's user interface does meanwhile. */
static void *look_on(void *argument) {
    (void)argument;
    (void)pthread_barrier_wait(&start);
    while (!atomic_load(&must_stop)) {
        bugpack_pedantic_state state = BUGPACK_PEDANTIC_STATE_INIT;
        CHECK(bugpack_pedantic_get(session, &state, NULL) == BUGPACK_OK);
        CHECK(state.written_count + state.pending_count <= state.cap);
        (void)bugpack_pedantic_enable(session, state.occurrence_count % 2 == 0);
        bugpack_status status = bugpack_report(session, NULL, NULL, NULL);
        CHECK(status == BUGPACK_OK || status == BUGPACK_ERR_BUSY);
        bugpack_gap_unknown(session, "look", state.occurrence_count, &state, sizeof state);
    }
    return NULL;
}

static unsigned count_reports(const temp_dir *dir) {
    unsigned count = 0;
    DIR *listing = opendir(dir->path);
    struct dirent *entry;
    CHECK(listing != NULL);
    while ((entry = readdir(listing)) != NULL) {
        count += strstr(entry->d_name, "-pedantic-channel-") != NULL;
    }
    (void)closedir(listing);
    return count;
}

static void run(const temp_dir *dir, bool with_onlooker) {
    pthread_t threads[thread_count];
    unsigned numbers[thread_count];
    pthread_t onlooker;
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "stress";
    options.report_dir = dir->path;
    options.sample_window_ms = BUGPACK_OFF;
    options.stacks = BUGPACK_STACKS_NONE; /* a tenth of a second for each report */
    options.pedantic.is_enabled = true;
    options.pedantic.channel_cap = 10;
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    CHECK(pthread_barrier_init(&start, NULL, thread_count + with_onlooker) == 0);
    atomic_store(&must_stop, false);
    atomic_store(&state_count, 0);
    for (unsigned i = 0; i < thread_count; i++) {
        numbers[i] = i;
        CHECK(pthread_create(&threads[i], NULL, meet_gaps, &numbers[i]) == 0);
    }
    CHECK(!with_onlooker || pthread_create(&onlooker, NULL, look_on, NULL) == 0);
    for (unsigned i = 0; i < thread_count; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    atomic_store(&must_stop, true);
    CHECK(!with_onlooker || pthread_join(onlooker, NULL) == 0);
    bugpack_pedantic_state state = BUGPACK_PEDANTIC_STATE_INIT;
    CHECK(bugpack_pedantic_get(session, &state, NULL) == BUGPACK_OK);
    if (!with_onlooker) {
        CHECK(state.occurrence_count == (uint64_t)gaps_each * thread_count);
        CHECK(state.distinct_count == key_count);
        CHECK(state.written_count + state.pending_count == key_count);
    }
    bugpack_close(session);
    CHECK(pthread_barrier_destroy(&start) == 0);
    unsigned written = count_reports(dir);
    CHECK(with_onlooker ? written <= key_count : written == key_count);
    CHECK(atomic_load(&state_count) <= key_count);
    (void)printf("%u gaps from %u threads, %u keys: %u reports%s\n", gaps_each * thread_count,
                 (unsigned)thread_count, (unsigned)key_count, written,
                 with_onlooker ? ", while the mode was switched" : "");
}

int main(int argument_count, char **arguments) {
    unsigned long total = run_length(argument_count, arguments, 100000);
    gaps_each = (unsigned)(total / thread_count);
    for (unsigned turn = 0; turn < 2; turn++) {
        temp_dir dir;
        CHECK(temp_dir_make(&dir));
        run(&dir, turn == 1);
        temp_dir_remove(&dir);
        gaps_each /= 4;
    }
    return 0;
}
