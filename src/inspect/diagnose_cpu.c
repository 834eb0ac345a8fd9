/* Diagnoses of CPU: threads that use too much of it, and too many threads. */

#include <inttypes.h>
#include <stdio.h>

#include "inspect/evidence.h"

/*
 * A thread is busy that used nearly all of the window, or of its own time if it was born in it; and
 * on a machine with too few processors one that used some of it, and was ready to run for the rest.
 */
static void find_busy(bp_evidence *evidence, bool is_wanted_in_kernel) {
    static const double busy_percent = 90, starved_percent = 20, least_ms = 250;
    for (size_t i = 0; i < evidence->busiest_count; i++) {
        const bp_thread *thread = evidence->busiest[i];
        bool has_rate = thread->is_born && thread->age_ms >= least_ms;
        double lived_ms = has_rate ? thread->age_ms : evidence->window_ms;
        double percent = has_rate ? thread->cpu_ms / lived_ms * 100 : thread->cpu_percent;
        bool is_starved = thread->voluntary_switches == 0 && !thread->is_born &&
                          percent < busy_percent && percent >= starved_percent &&
                          lived_ms >= least_ms;
        double system_ms = thread->system_ms > 0 ? thread->system_ms : 0;
        bool is_in_kernel = system_ms * 4 >= thread->cpu_ms && thread->cpu_ms > 0;
        char share[64] = "";
        if ((percent < busy_percent && !is_starved) || is_in_kernel != is_wanted_in_kernel) {
            continue;
        }
        if (is_in_kernel) {
            (void)snprintf(share, sizeof share, ", %.0f %% of it in system calls",
                           system_ms / thread->cpu_ms * 100);
        }
        bp_find(evidence, "thread %" PRIu64 " \"%s\"%s used %.0f %% of one CPU for %.1f s%s%s",
                thread->tid, thread->name, has_rate ? ", born in the window," : "", percent,
                lived_ms / 1000, share, is_starved ? ", and was ready to run for the rest" : "");
    }
}

void bp_diagnose_spin(bp_evidence *evidence) {
    find_busy(evidence, false);
}

void bp_diagnose_spin_calls(bp_evidence *evidence) {
    find_busy(evidence, true);
}

void bp_diagnose_many_threads(bp_evidence *evidence) {
    enum { same_name_min = 512 }; /* a Java program has hundreds of threads, of many names */
    if (evidence->common_count >= same_name_min) {
        bp_find(evidence, "%" PRIu64 " of its %" PRIu64 " threads are called \"%s\"",
                evidence->common_count, evidence->measured_count, evidence->common_name);
    }
}
