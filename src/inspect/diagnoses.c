/* The table of diagnoses, and the findings of a summary. */
#include "inspect/diagnoses.h"

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
