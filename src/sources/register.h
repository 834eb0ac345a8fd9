#ifndef BP_SOURCES_REGISTER_H
#define BP_SOURCES_REGISTER_H

#include "report/context.h"

/* Registers the sources that apply to the session. */
bugpack_status bp_sources_register(const bp_report_context *context, bugpack_error *error);

#endif
