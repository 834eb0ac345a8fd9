#include "sources/source.h"

bugpack_status bp_source_add(const bp_report_context *context, const bp_provider_spec *spec,
                             bugpack_error *error) {
    char name[BP_SUBJECT_NAME_BYTES];
    bp_provider_spec own = *spec;
    own.name = bp_subject_entry(context->subject, spec->name, name);
    return bp_provider_list_add(context->providers, &own, error);
}

int bp_source_end(bugpack_writer *writer, bugpack_status status, const bugpack_error *error) {
    if (status == BUGPACK_ERR_UNSUPPORTED || status == BUGPACK_ERR_NO_PROCESS ||
        status == BUGPACK_ERR_DENIED) {
        bp_writer_refuse(writer, BP_ARTEFACT_OMITTED, "%s", error->message);
        writer->line.is_missing = false;
        return 0;
    }
    return status == BUGPACK_OK ? 0 : bugpack_fail(writer, "%s", error->message);
}
