#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "report/name.h"
#include "session/session.h"

static const size_t provider_max_count = 512;

/* The place of the provider with this name, or provider_count. The mutex is held. */
static size_t find_provider(const bugpack *session, const char *name) {
    size_t i = 0;
    while (i < session->provider_count &&
           !bp_name_is_same_entry(bp_provider_name(session->providers[i]), name)) {
        i++;
    }
    return i;
}

static bool is_name_free(const bugpack *session, const char *name) {
    size_t i = 0;
    while (i < session->provider_count &&
           !bp_name_is_in_the_way(bp_provider_name(session->providers[i]), name)) {
        i++;
    }
    return i == session->provider_count;
}

static bugpack_status make_room(bugpack *session, bugpack_error *error) {
    if (session->provider_count < session->provider_capacity) {
        return BUGPACK_OK;
    }
    if (session->provider_count >= provider_max_count) {
        return bp_fail(error, BUGPACK_ERR_NO_MEMORY, "a session has at most %zu providers",
                       provider_max_count);
    }
    size_t capacity = session->provider_capacity == 0 ? 8 : session->provider_capacity * 2;
    bp_provider **providers = realloc(session->providers, capacity * sizeof *providers);
    if (providers == NULL) {
        return bp_fail_memory(error, "register a provider");
    }
    session->providers = providers;
    session->provider_capacity = capacity;
    return BUGPACK_OK;
}

/* The reference is taken over on success only. */
static bugpack_status add(bugpack *session, bp_provider *provider, bugpack_error *error) {
    (void)pthread_mutex_lock(&session->providers_mutex);
    bugpack_status status = BUGPACK_OK;
    const char *name = bp_provider_name(provider);
    if (!is_name_free(session, name)) {
        status = bp_fail(error, BUGPACK_ERR_INVALID, "the artefact name \"%s\" is taken", name);
    } else {
        status = make_room(session, error);
    }
    if (status == BUGPACK_OK) {
        session->providers[session->provider_count++] = provider;
    }
    (void)pthread_mutex_unlock(&session->providers_mutex);
    return status;
}

bugpack_status bp_session_register(bugpack *session, const bp_provider_spec *spec,
                                   bugpack_error *error) {
    bp_provider *provider = NULL;
    bugpack_status status = bp_provider_new(spec, &provider, error);
    if (status != BUGPACK_OK) {
        if (spec->release != NULL) {
            spec->release(spec->context);
        }
        return status;
    }
    status = add(session, provider, error);
    if (status != BUGPACK_OK) {
        bp_provider_drop(provider); /* releases the context */
    }
    return status;
}

bugpack_status bp_session_list_providers(bugpack *session, bp_provider ***ret_providers,
                                         size_t *ret_count, bugpack_error *error) {
    (void)pthread_mutex_lock(&session->providers_mutex);
    size_t count = session->provider_count;
    bp_provider **providers = calloc(count + 1, sizeof(bp_provider *));
    for (size_t i = 0; providers != NULL && i < count; i++) {
        providers[i] = bp_provider_retain(session->providers[i]);
    }
    (void)pthread_mutex_unlock(&session->providers_mutex);
    if (providers == NULL) {
        return bp_fail_memory(error, "list the providers");
    }
    *ret_providers = providers;
    *ret_count = count;
    return BUGPACK_OK;
}

void bp_session_retire_providers(bugpack *session) {
    for (size_t i = 0; i < session->provider_count; i++) {
        (void)bp_provider_retire(session->providers[i]);
    }
}

void bp_session_drop_providers(bp_provider **providers, size_t count) {
    for (size_t i = 0; i < count; i++) {
        bp_provider_drop(providers[i]);
    }
    free(providers);
}

static bugpack_status make_provider(bugpack *session, const char *name, bp_content_form form,
                                    bugpack_provider *provider, void *context,
                                    bugpack_error *error) {
    const char *refusal = name == NULL ? "it is NULL" : bp_name_refuse_artefact(name);
    if (refusal != NULL || provider == NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the artefact name \"%s\" cannot be used: %s",
                       name == NULL ? "" : name, refusal == NULL ? "it has no provider" : refusal);
    }
    bp_provider_spec spec = {.name = name,
                             .form = form,
                             .provide = provider,
                             .context = context,
                             .limit_bytes = session->options.artefact_limit_bytes,
                             .timeout_ms = session->options.provider_timeout_ms};
    return bp_session_register(session, &spec, error);
}

static bugpack_status provide(bugpack *session, const char *name, bp_content_form form,
                              bugpack_provider *provider, void *context, bugpack_error *error) {
    bp_guard_entry entry;
    bugpack_status status = bp_session_enter(session, &entry);
    if (status != BUGPACK_OK) {
        return bp_fail(error, status, "cannot register a provider: %s",
                       bugpack_status_name(status));
    }
    status = make_provider(session, name, form, provider, context, error);
    bp_session_leave(&entry);
    return status;
}

bugpack_status bugpack_provide_json(bugpack *session, const char *name, bugpack_provider *provider,
                                    void *context, bugpack_error *error) {
    return provide(session, name, BP_CONTENT_JSON, provider, context, error);
}

bugpack_status bugpack_provide_text(bugpack *session, const char *name, bugpack_provider *provider,
                                    void *context, bugpack_error *error) {
    return provide(session, name, BP_CONTENT_TEXT, provider, context, error);
}

bugpack_status bugpack_provide_bytes(bugpack *session, const char *name, bugpack_provider *provider,
                                     void *context, bugpack_error *error) {
    return provide(session, name, BP_CONTENT_BYTES, provider, context, error);
}

static bp_provider *take_off(bugpack *session, const char *name) {
    bp_provider *found = NULL;
    (void)pthread_mutex_lock(&session->providers_mutex);
    size_t place = find_provider(session, name);
    if (place < session->provider_count) {
        found = session->providers[place];
        session->provider_count--;
        memmove(&session->providers[place], &session->providers[place + 1],
                (session->provider_count - place) * sizeof(bp_provider *));
    }
    (void)pthread_mutex_unlock(&session->providers_mutex);
    return found;
}

bool bugpack_unprovide(bugpack *session, const char *name) {
    if (name == NULL || bp_runner_is_inside_provider() || bp_name_refuse_artefact(name) != NULL) {
        return false;
    }
    bp_guard_entry entry;
    if (bp_session_enter(session, &entry) != BUGPACK_OK) {
        return false;
    }
    bool is_idle = false;
    bp_provider *found = take_off(session, name);
    if (found != NULL) {
        is_idle = bp_provider_retire(found);
        bp_provider_drop(found);
    }
    bp_session_leave(&entry);
    return is_idle;
}
