/*
 * The providers of a session, in the order of registration.
 */
#ifndef BP_REPORT_PROVIDER_LIST_H
#define BP_REPORT_PROVIDER_LIST_H

#include "base/lock.h"
#include "report/provider.h"

typedef struct bp_provider_list {
    bp_lock lock;
    bp_provider **providers; /* in the order of registration */
    size_t count, capacity;
} bp_provider_list;

/* Every function but these two may be called on any thread. The release lets no new call begin, and
 * waits for those that a cancelled report left running, each until its time limit: the host frees
 * afterwards what they may touch. */
void bp_provider_list_init(bp_provider_list *list);
void bp_provider_list_release(bp_provider_list *list);

/*
 * Registers a provider. The spec's context is taken over in any case: on a failure it is released
 * as the spec says. INVALID (a name that cannot be used, or is taken), LIMIT, NO_MEMORY.
 */
bugpack_status bp_provider_list_add(bp_provider_list *list, const bp_provider_spec *spec,
                                    bugpack_error *error);

/* Removes the provider of this name. True when it was there and no call is inside it any more. */
bool bp_provider_list_remove(bp_provider_list *list, const char *name);

/* A copy of the list; each provider has a reference that bp_provider_list_drop gives back. */
bugpack_status bp_provider_list_get(bp_provider_list *list, bp_provider ***ret_providers,
                                    size_t *ret_count, bugpack_error *error);
void bp_provider_list_drop(bp_provider **providers, size_t count);

#endif
