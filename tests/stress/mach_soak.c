/*
 * The soak of the runbook against the counting kernel: no right more at the end than at the
 * beginning. A Mac's own soak looks at the process from outside, for an hour.
 */
#include <malloc.h>
#include <stdio.h>

#include "support/check.h"
#include "support/mach/fake_kernel.h"

#include "probe/sampler.h"

enum { THREAD_COUNT = 40 };

static void sample_once(bp_sampler *sampler) {
    bp_metrics metrics;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (bp_sampler_begin(sampler, &error) != BUGPACK_OK ||
        bp_sampler_end(sampler, &metrics, &error) != BUGPACK_OK) {
        (void)fprintf(stderr, "%s\n", error.message);
        exit(1);
    }
    CHECK(metrics.thread_count == THREAD_COUNT);
    bp_metrics_release(&metrics);
}

int main(int argument_count, char **arguments) {
    unsigned long sample_count = run_length(argument_count, arguments, 10000);
    bp_sampler *sampler = NULL;
    mach_fake_reset();
    for (uint64_t id = 1; mach_fake.thread_count < THREAD_COUNT; id++) {
        (void)mach_fake_add(5000 + id, "worker", id, id);
    }
    CHECK(bp_sampler_open(0, &sampler, NULL) == BUGPACK_OK);
    sample_once(sampler); /* what is allocated once and kept is no growth */
    mach_fake_account initial = mach_fake_outstanding();
    size_t initial_heap = mallinfo2().uordblks;
    /* Each window is two samples. */
    for (unsigned long i = 0; i < sample_count / 2; i++) {
        sample_once(sampler);
    }
    mach_fake_account final = mach_fake_outstanding();
    size_t final_heap = mallinfo2().uordblks;
    (void)printf("%lu samples of %d threads: %llu rights were given\n", sample_count, THREAD_COUNT,
                 (unsigned long long)(final.rights_given - initial.rights_given));
    (void)printf("rights: initial %zu, final %zu, growth per sample %.6f\n", initial.rights,
                 final.rights,
                 ((double) final.rights - (double)initial.rights) / (double)sample_count);
    (void)printf("list bytes: initial %zu, final %zu; heap: initial %zu, final %zu bytes\n",
                 initial.list_bytes, final.list_bytes, initial_heap, final_heap);
    CHECK(final.rights_given - initial.rights_given == (uint64_t)sample_count * THREAD_COUNT);
    CHECK(final.rights == initial.rights && final.rights == 0);
    CHECK(final.list_bytes == 0 && final.wrong_releases == 0);
    CHECK(final_heap <= initial_heap);
    bp_sampler_close(sampler);
    return 0;
}
