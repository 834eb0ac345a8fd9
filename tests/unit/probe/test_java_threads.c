/*
 * Which thread waits for the monitor of an object, in the memory of a Java virtual machine.
 */
#include "process/java_threads.h"
#include "unit/unit.h"

enum { AT = 0x10000, LIST = 1, THREADS = 8, FIRST = 16, SECOND = 32, MONITOR = 48 };
enum { SYSTEM = 0, PENDING = 1, BASE = 2, BYTES = 3, ID = 4, TID = 5, OWNER = 1 };

static uint64_t memory[64]; /* from AT on */

static uint64_t address_of(size_t word) {
    return AT + word * sizeof memory[0];
}

static bool read_memory(void *context, uint64_t address, void *out, size_t bytes) {
    if (address < AT || address - AT > sizeof memory || bytes > sizeof memory - (address - AT)) {
        return false;
    }
    memcpy(out, (const char *)memory + (address - AT), bytes);
    return true;
}

/* The first of two threads waits for a monitor whose owner is a word. */
static size_t find(uint64_t owner, bool has_id, bp_java_wait *wait) {
    const bp_java_layout layout = {.read = read_memory,
                                   .list = AT,
                                   .list_length = 4,
                                   .list_threads = 8,
                                   .system_thread = SYSTEM * 8,
                                   .system_tid = TID * 8,
                                   .pending_monitor = PENDING * 8,
                                   .owner = OWNER * 8,
                                   .stack_base = BASE * 8,
                                   .stack_bytes = BYTES * 8,
                                   .has_id = has_id,
                                   .id = ID * 8};
    memset(memory, 0, sizeof memory);
    memory[0] = address_of(LIST);
    memory[LIST] = (uint64_t)2 << 32;
    memory[LIST + 1] = address_of(THREADS);
    memory[THREADS] = address_of(FIRST);
    memory[THREADS + 1] = address_of(SECOND);
    for (size_t thread = FIRST; thread <= SECOND; thread += SECOND - FIRST) {
        memory[thread + SYSTEM] = address_of(thread);
        memory[thread + TID] = 4700 + thread;
        memory[thread + BASE] = 0x7000000 + thread * 0x1000;
        memory[thread + BYTES] = 0x1000;
        memory[thread + ID] = 20 + thread;
    }
    memory[FIRST + PENDING] = address_of(MONITOR);
    memory[MONITOR + OWNER] = owner;
    return bp_java_find_waits(&layout, wait, 1);
}

Test(java, names_the_owner_by_its_address_its_stack_or_its_number) {
    bp_java_wait wait;
    cr_assert(eq(sz, find(address_of(SECOND), false, &wait), 1));
    cr_expect(wait.tid == 4700 + FIRST && wait.owner_tid == 4700 + SECOND);
    cr_expect(eq(u64, wait.monitor, address_of(MONITOR)));
    cr_expect(eq(sz, find(0x7000000 + SECOND * 0x1000 - 8, false, &wait), 1));
    cr_expect(eq(u64, wait.owner_tid, 4700 + SECOND));
    cr_expect(eq(sz, find(20 + SECOND, true, &wait), 1));
    cr_expect(eq(u64, wait.owner_tid, 4700 + SECOND));
}

Test(java, names_nobody_whom_it_does_not_know) {
    bp_java_wait wait;
    cr_expect(eq(sz, find(0, false, &wait), 0));
    cr_expect(eq(sz, find(1, true, &wait), 0),
              "of an object that was locked before anybody waited");
    cr_expect(eq(sz, find(0x7000000 + SECOND * 0x1000, false, &wait), 0), "behind the stack");
    cr_expect(eq(sz, find(address_of(SECOND), true, &wait), 0));
    cr_expect(eq(sz, find(address_of(FIRST), false, &wait), 0), "itself");
}

Test(java, believes_no_list_that_cannot_be) {
    bp_java_wait wait;
    const bp_java_layout layout = {
        .read = read_memory, .list = AT, .list_length = 0, .list_threads = 8};
    memset(memory, 0xff, sizeof memory);
    cr_expect(eq(sz, bp_java_find_waits(&layout, &wait, 1), 0));
    memory[0] = address_of(LIST);
    cr_expect(eq(sz, bp_java_find_waits(&layout, &wait, 1), 0));
}
