/*
 * What the runner needs of a provider and nobody else: entering, leaving, and what to call.
 */
#ifndef BP_REPORT_CALL_H
#define BP_REPORT_CALL_H

#include "report/provider.h"

typedef enum bp_provider_entry {
    BP_PROVIDER_ENTERED,
    BP_PROVIDER_RETIRED,
    BP_PROVIDER_STILL_RUNNING /* an earlier call has not returned yet */
} bp_provider_entry;

const bp_provider_spec *bp_provider_spec_of(const bp_provider *provider);

/* Claims the provider for one call. After BP_PROVIDER_ENTERED a leave must follow. */
bp_provider_entry bp_provider_enter(bp_provider *provider);
void bp_provider_leave(bp_provider *provider);

#endif
