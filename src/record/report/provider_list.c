#include "report/provider_list.h"

#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/status.h"
#include "model/entry.h"

static const size_t provider_max_count = 3072;

void bp_provider_list_init(bp_provider_list *list) {
    *list = (bp_provider_list){.count = 0};
    bp_lock_init(&list->lock, BP_LOCK_PROVIDER_LIST);
}

void bp_provider_list_drop(bp_provider **providers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bp_provider_drop(providers[i]);
    }
    free(providers);
}

void bp_provider_list_release(bp_provider_list *list) {
    for (size_t i = 0; i < list->count; i++) {
        (void)bp_provider_retire(list->providers[i]);
    }
    bp_provider_list_drop(list->providers, list->count);
    bp_lock_destroy(&list->lock);
}

/* Takes the reference over on success. The lock is held. */
static bugpack_status append(bp_provider_list *list, bp_provider *provider, bugpack_error *error) {
    const char *name = provider->spec.name;
    for (size_t i = 0; i < list->count; i++) {
        if (bp_entry_is_in_the_way(list->providers[i]->spec.name, name)) {
            return bp_fail(error, BUGPACK_ERR_INVALID, "the artefact name \"%s\" is taken", name);
        }
    }
    if (list->count >= provider_max_count) {
        return bp_fail(error, BUGPACK_ERR_LIMIT, "a session has at most %zu providers",
                       provider_max_count);
    }
    if (!bp_array_reserve(&list->providers, list->count, &list->capacity)) {
        return bp_fail_memory(error, "register a provider");
    }
    list->providers[list->count++] = provider;
    return BUGPACK_OK;
}

bugpack_status bp_provider_list_add(bp_provider_list *list, const bp_provider_spec *spec,
                                    bugpack_error *error) {
    bp_provider *provider = NULL;
    bugpack_status status = bp_provider_new(spec, &provider, error);
    if (status != BUGPACK_OK) {
        if (spec->release != NULL) {
            spec->release(spec->context);
        }
        return status;
    }
    bp_lock_acquire(&list->lock);
    status = append(list, provider, error);
    bp_lock_release(&list->lock);
    if (status != BUGPACK_OK) {
        bp_provider_drop(provider); /* releases the context */
    }
    return status;
}

bool bp_provider_list_remove(bp_provider_list *list, const char *name) {
    bp_provider *found = NULL;
    bp_lock_acquire(&list->lock);
    for (size_t i = 0; i < list->count && found == NULL; i++) {
        if (bp_entry_is_same(list->providers[i]->spec.name, name)) {
            found = list->providers[i];
            list->count--;
            memmove(&list->providers[i], &list->providers[i + 1],
                    (list->count - i) * sizeof(bp_provider *));
        }
    }
    bp_lock_release(&list->lock);
    bool is_idle = found != NULL && bp_provider_retire(found);
    bp_provider_drop(found);
    return is_idle;
}

bugpack_status bp_provider_list_get(bp_provider_list *list, bp_provider ***ret_providers,
                                    size_t *ret_count, bugpack_error *error) {
    bp_lock_acquire(&list->lock);
    size_t count = list->count;
    bp_provider **providers = calloc(count + 1, sizeof(bp_provider *));
    for (size_t i = 0; providers != NULL && i < count; i++) {
        providers[i] = bp_provider_retain(list->providers[i]);
    }
    bp_lock_release(&list->lock);
    if (providers == NULL) {
        return bp_fail_memory(error, "list the providers");
    }
    *ret_providers = providers;
    *ret_count = count;
    return BUGPACK_OK;
}
