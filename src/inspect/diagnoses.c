/* The table of diagnoses, and the findings of a summary. */
#include "inspect/diagnoses.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "inspect/summary.h"

const char *bp_severity_name(bp_severity severity) {
    static const char *const names[] = {"critical", "warning", "info"};
    return names[severity];
}

#define DIAGNOSIS_ROW(constant, id, severity, entry, path, next)                                   \
    [BP_DIAGNOSIS_##constant] = {id, BP_SEVERITY_##severity, entry, path, next},
const bp_diagnosis_row bp_diagnoses[] = {BP_DIAGNOSES(DIAGNOSIS_ROW)};
#undef DIAGNOSIS_ROW

bp_severity bp_finding_severity(const bp_finding *finding) {
    return bp_diagnoses[finding->diagnosis].severity;
}

bool bp_finding_comes_before(const bp_finding *one, const bp_finding *other) {
    return bp_finding_severity(one) != bp_finding_severity(other)
               ? bp_finding_severity(one) < bp_finding_severity(other)
               : one->diagnosis < other->diagnosis;
}

/* Beyond the maximum, the newest of the least severe ones is only counted. */
static void add(bp_summary *summary, const bp_finding *finding) {
    bp_finding *findings = summary->findings;
    if (summary->finding_count == BP_SUMMARY_FINDING_MAX) {
        size_t least = 0;
        for (size_t i = 1; i < BP_SUMMARY_FINDING_MAX; i++) {
            least = bp_finding_comes_before(&findings[i], &findings[least]) ? least : i;
        }
        bool makes_room = bp_finding_comes_before(finding, &findings[least]);
        summary
            ->other_finding_counts[bp_finding_severity(makes_room ? &findings[least] : finding)]++;
        if (!makes_room) {
            return;
        }
        summary->finding_count--;
        memmove(&findings[least], &findings[least + 1],
                (summary->finding_count - least) * sizeof findings[0]);
    }
    findings[summary->finding_count++] = *finding;
}

void bp_summary_find(bp_summary *summary, bp_diagnosis diagnosis, const char *entry,
                     const char *format, ...) {
    bp_finding finding = {.diagnosis = diagnosis};
    char name[2 * sizeof finding.entry], text[2 * sizeof finding.text];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    (void)snprintf(name, sizeof name, "%s%s", summary->folder,
                   entry != NULL ? entry : bp_diagnoses[diagnosis].entry);
    bp_utf8_copy(finding.entry, sizeof finding.entry, name);
    bp_utf8_copy(finding.text, sizeof finding.text, text);
    add(summary, &finding);
}

void bp_summary_take_findings(bp_summary *summary, const bp_summary *of_process) {
    for (size_t i = 0; i < of_process->finding_count; i++) {
        add(summary, &of_process->findings[i]);
    }
    for (size_t i = 0; i < BP_SEVERITY_COUNT; i++) {
        summary->other_finding_counts[i] += of_process->other_finding_counts[i];
    }
}

uint64_t bp_summary_other_findings(const bp_summary *summary) {
    uint64_t count = 0;
    for (size_t i = 0; i < BP_SEVERITY_COUNT; i++) {
        count += summary->other_finding_counts[i];
    }
    return count;
}

/* A name or an address takes so many bytes at most. */
enum { name_bytes_max = 47 };

static int cut_length(const char *text) {
    size_t length = strlen(text);
    return (int)(length <= name_bytes_max ? length : bp_utf8_cut(text, length, name_bytes_max));
}

/* "pipe 3 of cat (4711) and 2 more", "socket 4 of 10.0.0.9:5900", "socket 5": who is at the other
 * end, as far as it is known. */
static void print_file(const bp_json_tree *wait, const char *kind, char *out, size_t out_bytes) {
    const bp_json_tree *holder = bp_json_tree_first(bp_json_tree_array(wait, "other_end"));
    const bp_json_tree *socket = bp_json_tree_object(wait, "socket");
    const char *address =
        bp_json_tree_text_or(socket, "remote", bp_json_tree_text_or(socket, "local", ""));
    const char *name = bp_json_tree_text_or(holder, "name", "?");
    uint64_t fd = 0, pid = 0;
    size_t more = 0;
    char end[96] = "", others[32] = "";
    (void)bp_json_tree_uint(wait, "fd", &fd);
    for (const bp_json_tree *next = holder; next != NULL; next = bp_json_tree_next(next)) {
        more += next != holder ? 1 : 0;
    }
    if (more > 0) {
        (void)snprintf(others, sizeof others, " and %zu more", more);
    }
    if (bp_json_tree_uint(holder, "pid", &pid)) {
        (void)snprintf(end, sizeof end, " of %.*s (%" PRIu64 ")", cut_length(name), name, pid);
    } else if (address[0] != '\0') {
        (void)snprintf(end, sizeof end, " of %.*s", cut_length(address), address);
    }
    (void)snprintf(out, out_bytes, "%.16s %" PRIu64 "%s%s", kind, fd, end, others);
}

void bp_summary_read_wait(bp_summary_thread *thread, const bp_json_tree *wait) {
    const char *kind = bp_json_tree_text(wait, "kind");
    uint64_t tid;
    if (bp_json_tree_uint(wait, "tid", &tid)) {
        (void)snprintf(thread->waits_for, sizeof thread->waits_for, "%" PRIu64 " (%.32s)", tid,
                       kind != NULL ? kind : "?");
        thread->waits_for_thread = true;
    } else if (kind != NULL) {
        print_file(wait, kind, thread->waits_for, sizeof thread->waits_for);
    }
}

const char *bp_summary_born_words(const bp_summary_thread *thread) {
    const char *words = thread->state[0] != '\0' ? "born in the window, " : "born in the window";
    return thread->is_born ? words : "";
}

const char *bp_summary_wait_words(const bp_summary_thread *thread) {
    return thread->waits_for[0] == '\0' ? ""
           : thread->waits_for_thread   ? ", waits for thread "
                                        : ", waits on ";
}
