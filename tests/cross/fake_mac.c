/*
 * Makes the fake Mach a picture of this very process, so that tests/macos/acceptance.c, which
 * compares the sampler with getrusage, ps and the clock, can run on Linux: against a sampler that
 * is whole, and against such that leak.
 */
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/mach/fake_kernel.h"

static uint64_t began_ns;
static uint64_t listed_bytes;

/* A list that the kernel hands out takes whole pages of the task's. */
static const uint64_t page_bytes = 16384;

static void read_memory(void) {
    unsigned long size = 0;
    unsigned long resident = 0;
    FILE *file = fopen("/proc/self/statm", "re");
    if (file != NULL && fscanf(file, "%lu %lu", &size, &resident) == 2) {
        uint64_t bytes = (uint64_t)sysconf(_SC_PAGESIZE);
        mach_fake.virtual_bytes = size * bytes;
        mach_fake.resident_bytes = resident * bytes;
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

/* Called with the fake locked, before each call. */
static void look_alike(const char *call) {
    static uint64_t first_virtual_bytes;
    struct timespec cpu = {0};
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    mach_fake.threads[0].user_us = (uint64_t)cpu.tv_sec * 1000000 + (uint64_t)cpu.tv_nsec / 1000;
    mach_fake.absolute = mach_fake.started + (bp_clock_monotonic_ns() - began_ns) / 125 * 3;
    if (first_virtual_bytes == 0) {
        read_memory();
        first_virtual_bytes = mach_fake.virtual_bytes;
    }
    if (strcmp(call, "task_threads") == 0) {
        listed_bytes += page_bytes;
    } else if (strcmp(call, "mach_port_names") == 0) {
        listed_bytes += 2 * page_bytes;
    } else if (strcmp(call, "vm_deallocate") == 0) {
        listed_bytes -= page_bytes;
    }
    mach_fake.virtual_bytes = first_virtual_bytes + listed_bytes;
}

__attribute__((constructor)) static void make_mac(void) {
    mach_fake_reset();
    began_ns = bp_clock_monotonic_ns();
    mach_fake.started = mach_fake.absolute;
    mach_fake.start_secs += 100;
    mach_fake.thread_count = 0;
    mach_fake.ended_us = 0;
    for (unsigned i = 0; i < 12; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "accept-%u", i);
        (void)mach_fake_add(300 - i, name, 0, 0);
    }
    mach_fake.on_call = look_alike;
}
