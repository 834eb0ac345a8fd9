/* The table of diagnoses, and the findings. */
#include "diagnose/findings.h"

#include <string.h>

#include "model/entry.h"

const char *bp_severity_name(bp_severity severity) {
    static const char *const names[] = {"critical", "warning", "info"};
    return names[severity];
}

#define DIAGNOSIS_ROW(constant, id, severity, function, scope, entry, path, next)                  \
    [BP_DIAGNOSIS_##constant] = {id, BP_SEVERITY_##severity, entry, path, next},
const bp_diagnosis_row bp_diagnoses[] = {BP_DIAGNOSES(DIAGNOSIS_ROW)};
#undef DIAGNOSIS_ROW

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

uint64_t bp_findings_severity_count(const bp_findings *findings, bp_severity severity) {
    uint64_t count = findings->other_counts[severity];
    for (size_t i = 0; i < findings->count; i++) {
        count += bp_finding_severity(&findings->rows[i]) == severity;
    }
    return count;
}

static bool comes_before(const bp_finding *one, const bp_finding *other) {
    return bp_finding_severity(one) != bp_finding_severity(other)
               ? bp_finding_severity(one) < bp_finding_severity(other)
               : one->diagnosis < other->diagnosis;
}

void bp_findings_add(bp_findings *findings, const bp_finding *finding) {
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

/* Where a profile says where the thread was, it is no JSON, and there is nothing more to look for.
 */
static bool has_profile(const bp_finding *finding) {
    return bp_entry_find(finding->entry) == BP_ENTRY_PROFILE;
}

const char *bp_finding_path(const bp_finding *finding) {
    return has_profile(finding) ? "" : bp_diagnoses[finding->diagnosis].path;
}

const char *bp_finding_next(const bp_finding *finding) {
    return has_profile(finding) || finding->lacks_next ? "" : bp_diagnoses[finding->diagnosis].next;
}

const char *bp_findings_next(const bp_findings *findings, size_t place) {
    const char *next = bp_finding_next(&findings->rows[place]);
    bool is_repeated = place + 1 < findings->count &&
                       strcmp(next, bp_finding_next(&findings->rows[place + 1])) == 0;
    return is_repeated ? "" : next;
}
