/*
 * A system without a sampler. Linked with the stub instead of this system's platform.
 */
#include <criterion/criterion.h>
#include <criterion/new/assert.h>

#include "platform/allocator.h"
#include "platform/process_facts.h"
#include "probe/sampler.h"

Test(stub, opening_a_process_says_that_there_is_no_sampler) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_sampler *untouched = (bp_sampler *)&error;
    bp_sampler *sampler = untouched;
    cr_expect(eq(int, bp_sampler_open(0, &sampler, &error), BUGPACK_ERR_UNSUPPORTED));
    cr_expect(eq(ptr, sampler, untouched));
    cr_expect(eq(int, error.status, BUGPACK_ERR_UNSUPPORTED));
    cr_expect(eq(str, error.message, "there is no sampler for this system"));
}

Test(stub, reading_says_so_too_and_leaves_output_alone) {
    bp_task_snapshot snapshot = {.taken_ns = 42};
    bp_process_facts facts = {.pid = 42};
    bp_task *clone = NULL;
    cr_expect(eq(int, bp_task_snapshot_take(NULL, true, &snapshot, NULL), BUGPACK_ERR_UNSUPPORTED));
    cr_expect(eq(int, bp_process_facts_read(NULL, &facts, NULL), BUGPACK_ERR_UNSUPPORTED));
    cr_expect(eq(int, bp_task_clone(NULL, &clone, NULL), BUGPACK_ERR_UNSUPPORTED));
    cr_expect(eq(ptr, clone, NULL));
    cr_expect(eq(u64, snapshot.taken_ns, 42));
    cr_expect(eq(int, facts.pid, 42));
    bp_task_close(NULL);
}

Test(stub, asking_the_allocator_says_that_there_is_no_way_and_leaves_output_alone) {
    bugpack_error error = BUGPACK_ERROR_INIT;
    bp_heap_reading reading = {.state = {.mapped_bytes = 42}};
    cr_expect(eq(int, bp_allocator_read(&reading, &error), BUGPACK_ERR_UNSUPPORTED));
    cr_expect(eq(str, error.message, "there is no way to ask an allocator here"));
    cr_expect(eq(u64, reading.state.mapped_bytes, 42));
}
