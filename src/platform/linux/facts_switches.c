/*
 * How often the threads of a process gave up the CPU, or lost it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "platform/linux/facts_private.h"

static void read_own(bp_process_facts *facts) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) == 0) {
        facts->voluntary_switches =
            (bp_known_uint){.known = true, .value = (uint64_t)usage.ru_nvcsw};
        facts->involuntary_switches =
            (bp_known_uint){.known = true, .value = (uint64_t)usage.ru_nivcsw};
    }
}

/* Adds a number of a thread's status to a sum, which is known once something was added. */
static void add_number(bp_known_uint *sum, const char *text, size_t length, const char *key) {
    uint64_t value;
    if (bp_proc_find_number(text, length, key, 0, &value) && value <= UINT64_MAX - sum->value) {
        sum->known = true;
        sum->value += value;
    }
}

bugpack_status bp_facts_read_switches(bp_task *task, bp_process_facts *facts,
                                      bugpack_error *error) {
    if (task->is_own) {
        read_own(facts);
        return BUGPACK_OK;
    }
    bp_thread_counters *threads = NULL;
    size_t count = 0;
    bugpack_status status = bp_task_list_threads(task, &threads, &count, error);
    if (status != BUGPACK_OK) {
        return status;
    }
    for (size_t i = 0; i < count; i++) {
        char path[40];
        char text[8192];
        (void)snprintf(path, sizeof path, "%llu/status", (unsigned long long)threads[i].tid);
        ssize_t length = bp_proc_read_small(task->threads_fd, path, text, sizeof text);
        if (length > 0) {
            add_number(&facts->voluntary_switches, text, (size_t)length, "voluntary_ctxt_switches");
            add_number(&facts->involuntary_switches, text, (size_t)length,
                       "nonvoluntary_ctxt_switches");
        }
    }
    free(threads);
    return BUGPACK_OK;
}
