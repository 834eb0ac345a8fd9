#include "sources/source.h"

bugpack_status bp_sources_register(const bp_report_context *context, bugpack_error *error) {
#define BP_SOURCE_ROW(name) bp_source_##name,
    static bp_source *const sources[] = {BP_SOURCES(BP_SOURCE_ROW)};
#undef BP_SOURCE_ROW
    bugpack_status status = BUGPACK_OK;
    for (size_t i = 0; status == BUGPACK_OK && i < sizeof sources / sizeof sources[0]; i++) {
        status = sources[i](context, error);
    }
    return status;
}

bugpack_status bp_sources_add_process(const bp_report_context *context, pid_t pid,
                                      bugpack_error *error) {
    bp_report_context further = *context;
    bugpack_status status = bp_subject_add(context->subject, pid, &further.subject, error);
    return status == BUGPACK_OK ? bp_sources_register(&further, error) : status;
}
