#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/machine_threads.h"

static const char *const cause_names[] = {
#define NAME(constant, name) name,
    BP_MACHINE_CAUSES(NAME)
#undef NAME
};

const char *bp_machine_cause_name(bp_machine_cause cause) {
    return cause_names[cause];
}

void bp_machine_process_release(bp_machine_process *process) {
    free(process->command_line);
    free(process->tids);
    free(process->heap);
    *process = (bp_machine_process){.tgid = 0};
}

bp_machine_error *bp_machine_summary_error(bp_machine_summary *summary, int system_errno) {
    size_t i = 0;
    while (i < summary->error_count && summary->errors[i].system_errno != system_errno) {
        i++;
    }
    if (i == BP_MACHINE_ERROR_MAX) {
        return &summary->errors[BP_MACHINE_ERROR_MAX - 1];
    }
    if (i == summary->error_count) {
        summary->errors[summary->error_count++] = (bp_machine_error){.system_errno = system_errno};
    }
    return &summary->errors[i];
}

void bp_machine_summary_add(bp_machine_summary *sum, const bp_machine_summary *part) {
    sum->denied_process_count += part->denied_process_count;
    sum->vanished_process_count += part->vanished_process_count;
    sum->process_count += part->process_count;
    sum->thread_count += part->thread_count;
    sum->vanished_thread_count += part->vanished_thread_count;
    sum->kernel_thread_count += part->kernel_thread_count;
    sum->heap_absent_count += part->heap_absent_count;
    sum->heap_thread_count += part->heap_thread_count;
    sum->heap_unread_count += part->heap_unread_count;
    for (size_t group = 0; group < BP_MACHINE_GROUP_COUNT; group++) {
        for (size_t cause = 0; cause < BP_MACHINE_CAUSE_COUNT; cause++) {
            sum->unread[group][cause] += part->unread[group][cause];
        }
    }
    for (size_t i = 0; i < part->error_count; i++) {
        bp_machine_error *error = bp_machine_summary_error(sum, part->errors[i].system_errno);
        error->process_count += part->errors[i].process_count;
        error->thread_count += part->errors[i].thread_count;
        error->file_count += part->errors[i].file_count;
    }
    for (size_t i = 0; i < BP_HEAP_FAILURE_COUNT; i++) {
        sum->heap_processes[i] += part->heap_processes[i];
        if (sum->heap_reasons[i][0] == '\0') {
            memcpy(sum->heap_reasons[i], part->heap_reasons[i], sizeof sum->heap_reasons[i]);
        }
    }
}

static bool is_of_the_kernel(size_t cause) {
    return cause == BP_MACHINE_CAUSE_DISABLED || cause == BP_MACHINE_CAUSE_MISSING;
}

static const char *denied_advice(const bp_machine_summary *summary) {
    return summary->is_root ? "a container or a security module keeps CAP_SYS_PTRACE from this root"
                            : "these files are for root, or for whoever has CAP_SYS_PTRACE";
}

static const char *advice_on(const bp_machine_summary *summary, size_t group, size_t cause) {
    if (cause == BP_MACHINE_CAUSE_DENIED) {
        return denied_advice(summary);
    }
    if (cause == BP_MACHINE_CAUSE_DISABLED &&
        (group == BP_MACHINE_WAKEUPS || group == BP_MACHINE_WAITS || group == BP_MACHINE_BLOCKS)) {
        return "this is counted from when root sets kernel.sched_schedstats to 1";
    }
    return "";
}

/* Replaces the dominant cause by one that is more frequent. */
static void consider(bp_machine_dominant *dominant, size_t group, const char *cause, uint64_t count,
                     const char *advice) {
    if (count > dominant->count) {
        dominant->group = bp_machine_group_name((bp_machine_group)group);
        dominant->cause = cause;
        dominant->count = count;
        (void)snprintf(dominant->advice, sizeof dominant->advice, "%s", advice);
    }
}

/* Considers the causes that are, or are not, the kernel's own. */
static void find_among(const bp_machine_summary *summary, bool of_the_kernel,
                       bp_machine_dominant *dominant) {
    for (size_t group = 0; group < BP_MACHINE_GROUP_COUNT; group++) {
        for (size_t cause = 0; cause < BP_MACHINE_CAUSE_COUNT; cause++) {
            if (is_of_the_kernel(cause) == of_the_kernel) {
                consider(dominant, group, cause_names[cause], summary->unread[group][cause],
                         advice_on(summary, group, cause));
            }
        }
    }
}

void bp_machine_find_dominant(const bp_machine_summary *summary,
                              bp_machine_dominant *ret_dominant) {
    *ret_dominant = (bp_machine_dominant){.group = "", .cause = ""};
    find_among(summary, false, ret_dominant);
    for (size_t i = BP_HEAP_FAILURE_NONE + 1; i < BP_HEAP_FAILURE_COUNT; i++) {
        consider(ret_dominant, BP_MACHINE_HEAP, bp_heap_failure_name((bp_heap_failure)i),
                 summary->heap_processes[i], summary->heap_reasons[i]);
    }
    if (ret_dominant->count == 0) {
        find_among(summary, true, ret_dominant);
    }
}

/* Whether a cause is a loss: the thread is there, and so is what it should show. */
static bool is_loss(size_t cause) {
    return !is_of_the_kernel(cause) && cause != BP_MACHINE_CAUSE_VANISHED;
}

static uint64_t count_denials(const bp_machine_summary *summary) {
    uint64_t count = summary->denied_process_count;
    for (size_t group = 0; group < BP_MACHINE_GROUP_COUNT; group++) {
        count += summary->unread[group][BP_MACHINE_CAUSE_DENIED];
    }
    return count;
}

bool bp_machine_summary_has_loss(const bp_machine_summary *summary) {
    uint64_t loss_count = summary->error_count;
    for (size_t group = 0; group < BP_MACHINE_GROUP_COUNT; group++) {
        for (size_t cause = 0; cause < BP_MACHINE_CAUSE_COUNT; cause++) {
            bool is_counted = is_loss(cause) && cause != BP_MACHINE_CAUSE_DENIED;
            loss_count += is_counted ? summary->unread[group][cause] : 0;
        }
    }
    return summary->is_cut || loss_count > 0;
}

bool bp_machine_summary_is_complete(const bp_machine_summary *summary) {
    return !bp_machine_summary_has_loss(summary) && !summary->is_hidden &&
           count_denials(summary) == 0;
}

/* One more part of a list, as much of it as fits. */
static void add_part(char *out, size_t out_bytes, const char *joint, const char *format, ...)
    BUGPACK_PRINTF(4, 5);

static void add_part(char *out, size_t out_bytes, const char *joint, const char *format, ...) {
    size_t used = strlen(out);
    if (used > 0 && used < out_bytes) {
        used += (size_t)snprintf(out + used, out_bytes - used, "%s", joint);
    }
    if (used < out_bytes) {
        va_list arguments;
        va_start(arguments, format);
        (void)vsnprintf(out + used, out_bytes - used, format, arguments);
        va_end(arguments);
    }
}

static const char *noun(uint64_t count, const char *one, const char *several) {
    return count == 1 ? one : several;
}

static void explain_errors(const bp_machine_summary *summary, char *out, size_t out_bytes) {
    for (size_t i = 0; i < summary->error_count; i++) {
        const bp_machine_error *found = &summary->errors[i];
        const struct {
            uint64_t count;
            const char *of;
        } counts[] = {{found->process_count, noun(found->process_count, "process", "processes")},
                      {found->thread_count, noun(found->thread_count, "thread", "threads")},
                      {found->file_count, noun(found->file_count, "other file", "other files")}};
        const char *joint = "; ";
        char message[BP_ERRNO_BYTES];
        for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++) {
            if (counts[j].count > 0) {
                add_part(out, out_bytes, joint, "%" PRIu64 " %s", counts[j].count, counts[j].of);
                joint = ", ";
            }
        }
        bp_describe_errno(found->system_errno, message);
        add_part(out, out_bytes, "", ": %s%s", message,
                 found->system_errno == EMFILE ? " (a higher \"ulimit -n\" helps)" : "");
    }
}

static void explain_groups(const bp_machine_summary *summary, char *out, size_t out_bytes) {
    /* Each kernel thread is a process without memory; one may have ended since it was counted. */
    uint64_t kernel_count = summary->kernel_thread_count;
    uint64_t user_process_count =
        summary->process_count > kernel_count ? summary->process_count - kernel_count : 0;
    for (size_t cause = 0; cause < BP_MACHINE_CAUSE_COUNT; cause++) {
        const char *joint = "; ";
        /* Files that failed with another errno are counted by errno, in explain_errors. */
        bool is_shown = is_loss(cause) && cause != BP_MACHINE_CAUSE_OTHER;
        for (size_t group = 0; is_shown && group < BP_MACHINE_GROUP_COUNT; group++) {
            uint64_t count = summary->unread[group][cause];
            bool is_memory = group == BP_MACHINE_MEMORY; /* first threads alone have it */
            if (count > 0) {
                add_part(out, out_bytes, joint, "%s of %" PRIu64 " of %" PRIu64 " %s (%s)",
                         bp_machine_group_name((bp_machine_group)group), count,
                         is_memory ? user_process_count : summary->thread_count,
                         is_memory ? "user processes" : "threads",
                         bp_machine_cause_name((bp_machine_cause)cause));
                joint = ", ";
            }
        }
    }
}

void bp_machine_summary_explain(const bp_machine_summary *summary, char *out, size_t out_bytes) {
    out[0] = '\0';
    if (summary->is_cut) {
        add_part(out, out_bytes, "; ", "it was ended before all threads were read");
    }
    if (summary->is_hidden) {
        add_part(out, out_bytes, "; ",
                 "/proc hides the processes of other users (hidepid); root sees them");
    }
    explain_errors(summary, out, out_bytes);
    if (summary->denied_process_count > 0) {
        add_part(out, out_bytes, "; ", "%" PRIu64 " %s (denied)", summary->denied_process_count,
                 noun(summary->denied_process_count, "process", "processes"));
    }
    explain_groups(summary, out, out_bytes);
    for (size_t i = BP_HEAP_FAILURE_NONE + 1; i < BP_HEAP_FAILURE_COUNT; i++) {
        if (summary->heap_processes[i] > 0) {
            add_part(out, out_bytes, ", ", "heap of %" PRIu64 " %s (%s)",
                     summary->heap_processes[i],
                     noun(summary->heap_processes[i], "process", "processes"),
                     bp_heap_failure_name((bp_heap_failure)i));
        }
    }
    if (count_denials(summary) > 0) {
        add_part(out, out_bytes, "; ", "%s", denied_advice(summary));
    }
}
