/*
 * From what a host's callback wrote to an artefact.
 */
#ifndef BP_REPORT_ACCEPT_H
#define BP_REPORT_ACCEPT_H

#include <stddef.h>

#include "report/provider.h"
#include "report/writer.h"

/*
 * Ends what a callback wrote into `given` before it returned `result`: what is left is passed on,
 * JSON is checked and passed on to `sink`. Afterwards `given` has no content, and its line says
 * what became of the artefact. Where that is neither OK nor TRUNCATED, what the sink got is to be
 * thrown away. `limit_bytes` is what `given` was limited to.
 */
void bp_provider_accept(bp_content_form form, size_t limit_bytes, int result, bugpack_writer *given,
                        bp_sink *sink, void *context);

#endif
