/* The table of diagnoses, and the findings. */
#include "diagnose/findings.h"

#include <string.h>

#include "base/utf8.h"

const char *bp_severity_name(bp_severity severity) {
    static const char *const names[] = {"critical", "warning", "info"};
    return names[severity];
}

#define DIAGNOSIS_ROW(constant, id, severity, function, scope, entry, path, next)                  \
    [BP_DIAGNOSIS_##constant] = {id, BP_SEVERITY_##severity, entry, path, next},
const bp_diagnosis_row bp_diagnoses[] = {BP_DIAGNOSES(DIAGNOSIS_ROW)};
#undef DIAGNOSIS_ROW

static bp_severity severity_of(const bp_finding *finding) {
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
    return severity_of(one) != severity_of(other) ? severity_of(one) < severity_of(other)
                                                  : one->diagnosis < other->diagnosis;
}

static void add(bp_findings *findings, const bp_finding *finding) {
    bp_finding *rows = findings->rows;
    if (findings->count == BP_FINDING_MAX) {
        size_t least = 0;
        for (size_t i = 1; i < BP_FINDING_MAX; i++) {
            least = comes_before(&rows[i], &rows[least]) ? least : i;
        }
        bool makes_room = comes_before(finding, &rows[least]);
        findings->other_counts[severity_of(makes_room ? &rows[least] : finding)]++;
        if (!makes_room) {
            return;
        }
        findings->count--;
        memmove(&rows[least], &rows[least + 1], (findings->count - least) * sizeof rows[0]);
    }
    rows[findings->count++] = *finding;
}

void bp_findings_add(bp_findings *findings, bp_diagnosis diagnosis, const char *entry,
                     const char *text) {
    bp_finding finding = {.diagnosis = diagnosis};
    bp_utf8_copy(finding.entry, sizeof finding.entry, entry);
    bp_utf8_copy(finding.text, sizeof finding.text, text);
    add(findings, &finding);
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
