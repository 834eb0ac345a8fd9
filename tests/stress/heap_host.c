/*
 * A host that really runs on an allocator: preloaded, linked, or linked statically.
 *
 *   heap_host ALLOCATOR [LIBRARY]   expects that one; LIBRARY is what was preloaded for it
 *
 * Checks that memory that is given out is counted, whatever thread did it, that the numbers stand
 * in the order that they must, and that a report has them.
 */
#include <bugpack/bugpack.h>
#include <bugpack/heap_state.h>

#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

enum { block_bytes = 64 << 10, block_count = 256, planted_bytes = block_bytes * block_count };

static char *blocks[block_count];

static void *plant(void *unused) {
    (void)unused;
    for (size_t i = 0; i < block_count; i++) {
        blocks[i] = malloc(block_bytes);
        CHECK(blocks[i] != NULL);
        memset(blocks[i], 1, block_bytes);
    }
    return NULL;
}

static bugpack_heap_state read_state(const char *allocator) {
    bugpack_heap_state state = BUGPACK_HEAP_STATE_INIT;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bugpack_heap_state_read(&state, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    if (strcmp(state.allocator, allocator) != 0) {
        (void)fprintf(stderr, "expected %s, found %s\n", allocator, state.allocator);
        exit(1);
    }
    return state;
}

static bool is_known(uint64_t number) {
    return number != BUGPACK_HEAP_UNKNOWN;
}

static void check_order(const bugpack_heap_state *state) {
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    bool has_allocated = is_known(state->allocated_bytes);
    CHECK(is_known(state->mapped_bytes));
    CHECK(!has_allocated || state->mapped_bytes >= state->allocated_bytes);
    if (is_known(state->active_bytes)) {
        CHECK(has_allocated && state->active_bytes >= state->allocated_bytes);
        CHECK(state->mapped_bytes >= state->active_bytes);
        CHECK(state->active_bytes % page_bytes == 0);
        CHECK(state->mapped_bytes % page_bytes == 0);
    }
    if (is_known(state->resident_bytes)) {
        CHECK(state->resident_bytes >= state->active_bytes);
        CHECK(state->resident_bytes % page_bytes == 0);
    }
}

/* 16 MiB more are given out, by another thread that has ended since. */
static void check_growth(const char *allocator) {
    bugpack_heap_state before = read_state(allocator);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, plant, NULL) == 0);
    CHECK(pthread_join(thread, NULL) == 0);
    bugpack_heap_state after = read_state(allocator);
    check_order(&before);
    check_order(&after);
    char *text = NULL;
    CHECK(bugpack_heap_state_text(&after, &text, NULL) == BUGPACK_OK);
    (void)printf("%s\n%s", allocator, text);
    bugpack_free(text);
    if (is_known(before.allocated_bytes)) {
        uint64_t grown = after.allocated_bytes - before.allocated_bytes;
        CHECK(grown >= planted_bytes && grown <= planted_bytes + planted_bytes / 4);
    }
    CHECK(after.mapped_bytes >= planted_bytes);
}

/* jemalloc knows all five. */
static void check_whole(const char *allocator) {
    bugpack_heap_state state = read_state(allocator);
    if (strcmp(allocator, "jemalloc") == 0) {
        CHECK(is_known(state.allocated_bytes) && is_known(state.active_bytes));
        CHECK(is_known(state.resident_bytes) && is_known(state.narenas) && state.narenas > 0);
        CHECK(state.allocated_bytes > 0);
    }
}

static void check_report(const char *allocator) {
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "heap";
    options.report_dir = dir.path;
    options.sample_window_ms = 1;
    options.recorder.is_in_memory = true;
    bugpack_session *session = NULL;
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    char expected[64];
    (void)snprintf(expected, sizeof expected, "\"allocator\": \"%s\"", allocator);
    CHECK(bugpack_open(&options, &session, NULL) == BUGPACK_OK);
    CHECK(bugpack_report(session, NULL, &result, NULL) == BUGPACK_OK);
    CHECK(result.missing_count == 0);
    CHECK(report_entry_contains(result.path, "heap-state.json", expected));
    bugpack_close(session);
    temp_dir_remove(&dir);
}

int main(int argument_count, char **arguments) {
    CHECK(argument_count == 2 || argument_count == 3);
    const char *allocator = arguments[1];
    const char *library = argument_count == 3 ? arguments[2] : "";
    if (strcmp(library, "sanitized") == 0) {
        SKIP("a sanitizer brings its own allocator, which another cannot be preloaded before");
    }
    if (strstr(library, "NOTFOUND") != NULL) {
        (void)printf("skipped: the library of %s is not installed\n", allocator);
        return 77;
    }
    check_growth(allocator);
    check_whole(allocator);
    check_report(allocator);
    for (size_t i = 0; i < block_count; i++) {
        free(blocks[i]);
    }
    return 0;
}
