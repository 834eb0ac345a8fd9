#include "base/halt.h"

#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "base/clock.h"
#include "base/spool.h"
#include "support/temp_dir.h"

Test(halt, is_never_due_without_a_deadline_or_a_halt) {
    bp_halt halt = {0};
    cr_assert(not(bp_halt_is_due(NULL)));
    cr_assert(not(bp_halt_is_due(&halt)));
    cr_assert(zero(int, (int)bp_halt_check(&halt, NULL)));
}

Test(halt, tells_a_deadline_from_a_cancel) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_halt halt = {.deadline_ns = bp_clock_monotonic_ns() + 3600 * BP_NS_PER_SEC};
    cr_assert(zero(int, (int)bp_halt_check(&halt, &error)));
    halt.deadline_ns = 1;
    cr_assert(eq(int, (int)bp_halt_check(&halt, &error), BUGPACK_ERR_TIMEOUT));
    atomic_store(&halt.is_cancelled, true);
    cr_assert(eq(int, (int)bp_halt_check(&halt, &error), BUGPACK_ERR_CANCELLED));
    cr_assert(eq(str, error.message, "the report was cancelled"));
}

Test(halt, stops_a_spool_before_its_next_write_and_sticks) {
    temp_dir dir;
    bp_spool spool;
    bp_halt halt = {0};
    bugpack_error error = BUGPACK_ERROR_INIT;
    static const char piece[100000];
    cr_assert(temp_dir_make(&dir));
    cr_assert(zero(int, (int)bp_spool_open(&spool, dir.fd, UINT64_MAX, NULL)));
    spool.halt = &halt;
    cr_assert(zero(int, (int)bp_spool_write(&spool, piece, sizeof piece)));
    atomic_store(&halt.is_cancelled, true);
    cr_assert(eq(int, (int)bp_spool_write(&spool, piece, sizeof piece), BUGPACK_ERR_CANCELLED));
    cr_assert(eq(u64, spool.size, sizeof piece));
    cr_assert(eq(int, (int)bp_spool_flush(&spool, &error), BUGPACK_ERR_CANCELLED));
    cr_assert(eq(str, error.message, "the report was cancelled"));
    bp_spool_release(&spool);
    temp_dir_remove(&dir);
}
