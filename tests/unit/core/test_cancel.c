#include "base/cancel.h"

#include <pthread.h>
#include <sched.h>

#include "base/clock.h"
#include "base/temp_file.h"
#include "unit/dir.h"

DIR_SUITE(token);

Test(token, is_never_due_without_a_deadline_or_a_halt) {
    bp_cancel_token token = {0};
    cr_assert(not(bp_cancel_is_due(NULL)));
    cr_assert(not(bp_cancel_is_due(&token)));
    cr_assert(zero(int, bp_cancel_check(&token, NULL)));
}

Test(token, tells_a_deadline_from_a_cancel) {
    bp_cancel_token token = {.deadline_ns = bp_clock_monotonic_ns() + 3600 * BP_NS_PER_SEC};
    cr_assert(zero(int, bp_cancel_check(&token, &failure)));
    token.deadline_ns = 1;
    cr_assert(eq(int, bp_cancel_check(&token, &failure), BUGPACK_ERR_TIMEOUT));
    atomic_store(&token.is_cancelled, true);
    cr_assert(eq(int, bp_cancel_check(&token, &failure), BUGPACK_ERR_CANCELLED));
    cr_assert(eq(str, failure.message, "the report was cancelled"));
}

/* One thread cancels them one after the other, and another checks each meanwhile. */
static bp_cancel_token tokens[500];
static atomic_size_t checked_count;

static void *cancel_each(void *unused) {
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        while (atomic_load(&checked_count) < i) {
            (void)sched_yield();
        }
        atomic_store(&tokens[i].is_cancelled, true);
    }
    return unused;
}

Test(token, that_is_cancelled_during_a_check_was_not_late) {
    pthread_t thread;
    cr_assert(zero(int, pthread_create(&thread, NULL, cancel_each, NULL)));
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        bugpack_status status = BUGPACK_OK;
        atomic_store(&checked_count, i);
        while (status == BUGPACK_OK) {
            status = bp_cancel_check(&tokens[i], NULL);
        }
        cr_assert(eq(int, status, BUGPACK_ERR_CANCELLED));
    }
    cr_assert(zero(int, pthread_join(thread, NULL)));
}

Test(token, stops_a_spool_before_its_next_write_and_sticks) {
    CLEANUP(bp_temp_file_release) bp_temp_file temp_file;
    bp_cancel_token token = {0};
    static const char piece[100000];
    cr_assert(zero(int, bp_temp_file_open(&temp_file, dir.fd, UINT64_MAX, NULL)));
    temp_file.token = &token;
    cr_assert(zero(int, bp_temp_file_write(&temp_file, piece, sizeof piece)));
    atomic_store(&token.is_cancelled, true);
    cr_assert(eq(int, bp_temp_file_write(&temp_file, piece, sizeof piece), BUGPACK_ERR_CANCELLED));
    cr_assert(eq(u64, temp_file.size, sizeof piece));
    cr_assert(eq(int, bp_temp_file_flush(&temp_file, &failure), BUGPACK_ERR_CANCELLED));
    cr_assert(eq(str, failure.message, "the report was cancelled"));
}
