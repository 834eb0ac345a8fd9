#include "sources/source.h"

bugpack_status bp_source_add(const bp_report_context *context, const bp_provider_spec *spec,
                             bugpack_error *error) {
    char name[BP_SUBJECT_NAME_BYTES];
    bp_provider_spec own = *spec;
    own.name = bp_subject_entry(context->subject, spec->name, name);
    return bp_provider_list_add(context->providers, &own, error);
}
