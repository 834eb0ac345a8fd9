#include "inspect/diagnose.h"

void bp_diagnose_none(bp_evidence *evidence) {
    (void)evidence;
}

enum { PROCESS = false, REPORT = true };
#define DIAGNOSIS_FUNCTION(constant, id, severity, function, scope, ...)                           \
    [BP_DIAGNOSIS_##constant] = {bp_diagnose_##function, scope},
static const struct {
    bp_diagnose_function *run;
    bool is_of_report; /* and not of each process */
} functions[] = {BP_DIAGNOSES(DIAGNOSIS_FUNCTION)};
#undef DIAGNOSIS_FUNCTION

void bp_diagnose(bp_evidence *evidence) {
    bool is_first = evidence->folder[0] == '\0';
    for (size_t i = 0; i < BP_DIAGNOSIS_COUNT; i++) {
        if (is_first || !functions[i].is_of_report) {
            evidence->running = (bp_diagnosis)i;
            functions[i].run(evidence);
        }
    }
}
