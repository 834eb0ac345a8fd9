/* The table of diagnoses, and the findings. */
#include "inspect/diagnose.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "inspect/evidence.h"

const char *bp_severity_name(bp_severity severity) {
    static const char *const names[] = {"critical", "warning", "info"};
    return names[severity];
}

enum { PROCESS = false, REPORT = true };
#define DIAGNOSIS_ROW(constant, id, severity, function, scope, entry, path, next)                  \
    [BP_DIAGNOSIS_##constant] = {                                                                  \
        id, BP_SEVERITY_##severity, bp_diagnose_##function, scope, entry, path, next},
const bp_diagnosis_row bp_diagnoses[] = {BP_DIAGNOSES(DIAGNOSIS_ROW)};
#undef DIAGNOSIS_ROW

void bp_diagnose_none(bp_evidence *evidence) {
    (void)evidence;
}

/* --- findings ----------------------------------------------------------------------------- */

bp_severity bp_finding_severity(const bp_finding *finding) {
    return bp_diagnoses[finding->diagnosis].severity;
}

uint64_t bp_findings_other_count(const bp_findings *findings) {
    uint64_t count = 0;
    for (size_t i = 0; i < BP_SEVERITY_COUNT; i++) {
        count += findings->other_counts[i];
    }
    return count;
}

static bool comes_before(const bp_finding *one, const bp_finding *other) {
    return bp_finding_severity(one) != bp_finding_severity(other)
               ? bp_finding_severity(one) < bp_finding_severity(other)
               : one->diagnosis < other->diagnosis;
}

/* Beyond the maximum, the newest of the least severe ones is only counted. */
static void add(bp_findings *findings, const bp_finding *finding) {
    bp_finding *rows = findings->rows;
    if (findings->count == BP_FINDING_MAX) {
        size_t least = 0;
        for (size_t i = 1; i < BP_FINDING_MAX; i++) {
            least = comes_before(&rows[i], &rows[least]) ? least : i;
        }
        bool makes_room = comes_before(finding, &rows[least]);
        findings->other_counts[bp_finding_severity(makes_room ? &rows[least] : finding)]++;
        if (!makes_room) {
            return;
        }
        findings->count--;
        memmove(&rows[least], &rows[least + 1], (findings->count - least) * sizeof rows[0]);
    }
    rows[findings->count++] = *finding;
}

static void find(bp_evidence *evidence, bp_diagnosis diagnosis, const char *entry,
                 const char *format, va_list arguments) {
    bp_finding finding = {.diagnosis = diagnosis};
    char name[2 * sizeof finding.entry], text[2 * sizeof finding.text];
    (void)vsnprintf(text, sizeof text, format, arguments);
    (void)snprintf(name, sizeof name, "%s%s", evidence->folder, entry);
    bp_utf8_copy(finding.entry, sizeof finding.entry, name);
    bp_utf8_copy(finding.text, sizeof finding.text, text);
    add(evidence->findings, &finding);
}

void bp_find(bp_evidence *evidence, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    find(evidence, evidence->running, bp_diagnoses[evidence->running].entry, format, arguments);
    va_end(arguments);
}

void bp_find_in(bp_evidence *evidence, const char *entry, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    find(evidence, evidence->running, entry, format, arguments);
    va_end(arguments);
}

void bp_find_as(bp_evidence *evidence, bp_diagnosis diagnosis, const char *entry,
                const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    find(evidence, diagnosis, entry, format, arguments);
    va_end(arguments);
}

void bp_diagnose(bp_evidence *evidence) {
    bool is_first = evidence->folder[0] == '\0';
    for (size_t i = 0; i < BP_DIAGNOSIS_COUNT; i++) {
        if (is_first || !bp_diagnoses[i].is_of_report) {
            evidence->running = (bp_diagnosis)i;
            bp_diagnoses[i].function(evidence);
        }
    }
}

void bp_findings_sort(bp_findings *findings) {
    bp_finding *rows = findings->rows;
    for (size_t i = 1; i < findings->count; i++) {
        bp_finding finding = rows[i];
        size_t at = i;
        for (; at > 0 && comes_before(&finding, &rows[at - 1]); at--) {
            rows[at] = rows[at - 1];
        }
        rows[at] = finding;
    }
}
