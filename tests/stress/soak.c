/*
 * The soak: a host in pedantic mode meets more gaps than it may report, and is then asked for a
 * report again and again, for a set time, while its threads record. What it holds at the end must
 * be what it held after its first reports, within 5 %: descriptors, threads, memory, rings.
 *
 * Both are measured while the writers rest, and not before each of them has written enough to have
 * allocated what it keeps. What a report in flight holds goes away when it is waited for; a leak
 * stays. Of the heap the bytes in use count, and not its pages: how many of those stay resident
 * depends on which threads happened to allocate at once. For the same reason all threads share one
 * arena and none keeps a cache, which glibc counts as in use.
 *
 *     stress_soak [SECONDS]        (10 unless told)
 *
 * It prints how many samples were taken, so that a leak can be told by the sample.
 */
#include <bugpack/bugpack.h>

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "base/clock.h"
#include "support/check.h"
#include "support/descriptors.h"
#include "support/temp_dir.h"

enum { writer_count = 4, gap_count = 60, gap_cap = 50, first_gaps = 10, kept_reports = 64 };

/* After so many records a writer has had each size and each notification. */
enum { warm_count = 4096, settle_turns = 200 };

static atomic_bool must_stop, must_rest, meets_gaps;
static atomic_uint warm_writers, resting_writers;
static bugpack_session *session;

/* What a leak would show in. Without glibc `heap_bytes` is 0 and `rss_kb` has the heap in it. */
struct holdings {
    size_t descriptors, threads, rings, ring_kb, heap_bytes, rss_kb;
};

static void pause_us(long microseconds) {
    const struct timespec time = {0, microseconds * 1000};
    (void)nanosleep(&time, NULL);
}

/* The rings' files are only looked at by name: opening one would end its guard. */
static void measure_rings(const char *recorder_dir, struct holdings *held) {
    DIR *directory = opendir(recorder_dir);
    CHECK(directory != NULL);
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        struct stat status;
        if (entry->d_name[0] != '.' && strstr(entry->d_name, ".ring") != NULL) {
            CHECK(fstatat(dirfd(directory), entry->d_name, &status, AT_SYMLINK_NOFOLLOW) == 0);
            held->rings++;
            held->ring_kb += (size_t)status.st_blocks / 2;
        }
    }
    (void)closedir(directory);
}

/* The only session below `base_dir`. */
static void find_session(const char *base_dir, char *path, size_t path_bytes) {
    DIR *directory = opendir(base_dir);
    CHECK(directory != NULL);
    path[0] = '\0';
    for (const struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (strncmp(entry->d_name, "soak-", 5) == 0) {
            (void)snprintf(path, path_bytes, "%s/%s", base_dir, entry->d_name);
        }
    }
    (void)closedir(directory);
    CHECK(path[0] != '\0');
}

static bool is_left_out(const char *mapping) {
#ifdef __GLIBC__
    return strstr(mapping, ".ring") != NULL || strstr(mapping, "[heap]") != NULL;
#else
    return strstr(mapping, ".ring") != NULL;
#endif
}

/* The resident memory without the rings, whose pages come as records are written, and the heap. */
static size_t resident_kb(void) {
    char line[4096];
    size_t sum_kb = 0, rss_kb = 0;
    bool is_counted = false;
    FILE *smaps = fopen("/proc/self/smaps", "re");
    CHECK(smaps != NULL);
    while (fgets(line, sizeof line, smaps) != NULL) {
        if (sscanf(line, "Rss: %zu", &rss_kb) == 1) {
            sum_kb += is_counted ? rss_kb : 0;
        } else if (strchr(line, '-') != NULL && strchr(line, ':') != NULL) {
            is_counted = !is_left_out(line);
        }
    }
    (void)fclose(smaps);
    return sum_kb;
}

static struct holdings measure(const char *base_dir) {
    char path[4096];
    struct holdings held = {.descriptors = count_descriptors(),
                            .threads = count_entries("/proc/self/task")};
    find_session(base_dir, path, sizeof path);
    measure_rings(path, &held);
#ifdef __GLIBC__
    held.heap_bytes = mallinfo2().uordblks;
#endif
    /* As if every page of the rings were there. */
    held.rss_kb = held.ring_kb + resident_kb();
    return held;
}

static void print(const char *when, struct holdings held) {
    (void)printf("%s: %zu descriptors, %zu threads, %zu rings of %zu KiB, %zu KiB of heap in use, "
                 "%zu KiB resident beside it\n",
                 when, held.descriptors, held.threads, held.rings, held.ring_kb,
                 held.heap_bytes / 1024, held.rss_kb);
    (void)fflush(stdout);
}

static bool is_within(const struct holdings *before, const struct holdings *after) {
    return after->descriptors * 100 <= before->descriptors * 105 &&
           after->threads * 100 <= before->threads * 105 &&
           after->rings * 100 <= before->rings * 105 &&
           after->ring_kb * 100 <= before->ring_kb * 105 &&
           after->heap_bytes * 100 <= before->heap_bytes * 105 &&
           after->rss_kb * 100 <= before->rss_kb * 105;
}

static void wait_for(const atomic_uint *count, unsigned wanted) {
    while (atomic_load(count) != wanted) {
        pause_us(1000);
    }
}

static size_t least(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Measures at rest; where there is a `before`, until nothing has grown, if that is ever so. */
static struct holdings measure_at_rest(const char *base_dir, const struct holdings *before) {
    atomic_store(&must_rest, true);
    wait_for(&resting_writers, writer_count);
    struct holdings held = measure(base_dir);
    for (unsigned i = 0; i < settle_turns; i++) {
        if (before != NULL && is_within(before, &held)) {
            break;
        }
        pause_us(before == NULL ? 1000 : 100000);
        struct holdings now = measure(base_dir);
        if (before != NULL) {
            held = now;
        } else { /* the least that it ever holds is what it is measured against */
            held.descriptors = least(held.descriptors, now.descriptors);
            held.threads = least(held.threads, now.threads);
            held.heap_bytes = least(held.heap_bytes, now.heap_bytes);
            held.rss_kb = least(held.rss_kb, now.rss_kb);
        }
    }
    atomic_store(&must_rest, false);
    return held;
}

/* A part of the host that logs, speaks its protocol and meets gaps that were met before. */
static void *write_records(void *argument) {
    bugpack_channel *channel = argument;
    char message[4096];
    memset(message, 'm', sizeof message);
    for (uint32_t i = 0; !atomic_load(&must_stop); i++) {
        bugpack_traffic(channel, (bugpack_direction)(i & 1), i, "message", message,
                        i % sizeof message);
        bugpack_log(session, BUGPACK_LEVEL_INFO, "soak", "record %" PRIu32, i);
        bugpack_notify(session, BUGPACK_LEVEL_INFO, "soak", NULL, "stream %" PRIu32, i % 700);
        char key[64];
        (void)snprintf(key, sizeof key, "display:unimpl:op_%" PRIu32, i % gap_count);
        if (atomic_load(&meets_gaps)) {
            bugpack_gap(session, key);
        }
        if (i == warm_count) {
            atomic_fetch_add(&warm_writers, 1);
        }
        if (i % 16 == 0) {
            pause_us(i < warm_count ? 100 : 2000);
        }
        if (atomic_load(&must_rest)) {
            atomic_fetch_add(&resting_writers, 1);
            while (atomic_load(&must_rest)) {
                pause_us(1000);
            }
            atomic_fetch_sub(&resting_writers, 1);
        }
    }
    return NULL;
}

/* Fills every ring, so that memory which is only touched later does not look like a leak. */
static void fill_rings(bugpack_channel **channels) {
    static char message[4096];
    for (int i = 0; i < 8192; i++) {
        for (int c = 0; c < writer_count; c++) {
            bugpack_traffic(channels[c], BUGPACK_SENT, 0, NULL, message, sizeof message);
        }
        bugpack_log(session, BUGPACK_LEVEL_INFO, "soak", "%02048d", i);
        bugpack_notify(session, BUGPACK_LEVEL_INFO, "soak", NULL, "%0256d", i);
    }
}

static bugpack_pedantic_state gaps(void) {
    bugpack_pedantic_state state = BUGPACK_PEDANTIC_STATE_INIT;
    CHECK(bugpack_pedantic_get(session, &state, NULL) == BUGPACK_OK);
    return state;
}

static void open_session(const char *directory, const char *recorder_dir,
                         bugpack_channel **channels) {
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "soak";
    options.report_dir = directory;
    options.recorder.dir = recorder_dir;
    options.sample_window_ms = 200;
    options.recorder.history_interval_ms = 100;
    options.recorder.traffic_budget_bytes = (uint64_t)16 << 20;
    options.pedantic.is_enabled = true;
    options.pedantic.cap = gap_cap;
    options.pedantic.channel_cap = gap_cap;
    options.limits.report_dir_max_count = kept_reports;
    bugpack_error error = BUGPACK_ERROR_INIT;
    CHECK(bugpack_open(&options, &session, &error) == BUGPACK_OK);
    static const char *const names[writer_count] = {"display", "inputs", "main", "usb"};
    bugpack_channel_options channel_options = BUGPACK_CHANNEL_OPTIONS_INIT;
    channel_options.weight = BUGPACK_TRAFFIC_WEIGHT_TOTAL / writer_count;
    for (int i = 0; i < writer_count; i++) {
        CHECK(bugpack_channel_open(session, names[i], &channel_options, &channels[i], &error) ==
              BUGPACK_OK);
    }
}

static uint64_t take_reports(uint64_t seconds) {
    uint64_t end_ns = bp_clock_monotonic_ns() + seconds * BP_NS_PER_SEC;
    uint64_t report_count = 0;
    while (bp_clock_monotonic_ns() < end_ns) {
        bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
        bugpack_status status = bugpack_report(session, NULL, &result, NULL);
        if (status != BUGPACK_OK && status != BUGPACK_ERR_BUSY) {
            (void)fprintf(stderr, "%s\n", result.error.message);
            exit(1);
        }
        report_count += status == BUGPACK_OK;
        pause_us(100000);
    }
    return report_count;
}

int main(int argument_count, char **arguments) {
    count_heap_exactly(arguments);
    unsigned long seconds = run_length(argument_count, arguments, 10);
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    bugpack_channel *channels[writer_count];
    char recorder_dir[sizeof dir.path + 16];
    (void)snprintf(recorder_dir, sizeof recorder_dir, "%s/recorder", dir.path);
    open_session(dir.path, recorder_dir, channels);
    fill_rings(channels);

    for (unsigned i = 0; i < first_gaps; i++) {
        char key[64];
        (void)snprintf(key, sizeof key, "display:unimpl:op_%u", i);
        bugpack_gap(session, key);
    }
    while (gaps().written_count < first_gaps) {
        pause_us(10000);
    }
    pthread_t writers[writer_count];
    for (int i = 0; i < writer_count; i++) {
        CHECK(pthread_create(&writers[i], NULL, write_records, channels[i]) == 0);
    }
    wait_for(&warm_writers, writer_count);
    CHECK(bugpack_report(session, NULL, NULL, NULL) == BUGPACK_OK);
    struct holdings before = measure_at_rest(recorder_dir, NULL);
    print("after the first reports", before);
    atomic_store(&meets_gaps, true);

    while (gaps().written_count < gap_cap) {
        pause_us(10000);
    }
    uint64_t report_count = take_reports(seconds);
    struct holdings after = measure_at_rest(recorder_dir, &before);
    print("at the end", after);
    bugpack_pedantic_state state = gaps();
    (void)printf("%" PRIu32 " pedantic reports of %" PRIu32 " gaps that were met %" PRIu64
                 " times, then %" PRIu64 " hotkey reports in %lu s: %" PRIu64 " samples\n",
                 state.written_count, state.distinct_count, state.occurrence_count, report_count,
                 seconds, report_count + state.written_count + 1);

    atomic_store(&must_stop, true);
    for (int i = 0; i < writer_count; i++) {
        CHECK(pthread_join(writers[i], NULL) == 0);
    }
    bugpack_close(session);
    CHECK(state.written_count == gap_cap && state.distinct_count == gap_count);
    CHECK(report_count > 0);
    CHECK(before.rings > 0);
    CHECK(is_within(&before, &after));
    temp_dir_remove(&dir);
    return 0;
}
