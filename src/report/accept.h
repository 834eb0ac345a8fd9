/*
 * From what a host's callback wrote to an artefact.
 */
#ifndef BP_REPORT_ACCEPT_H
#define BP_REPORT_ACCEPT_H

#include <stddef.h>

#include "report/provider.h"
#include "report/writer.h"

/*
 * Checks and converts what a callback wrote into `given` before it returned `result`, and takes the
 * content over into `writer`, which must be fresh; or fills in the reason why there is none.
 * `limit_bytes` is what `given` was limited to. `given` stays the caller's to release.
 */
void bp_provider_accept(bp_content_form form, size_t limit_bytes, int result, bugpack_writer *given,
                        bugpack_writer *writer);

#endif
