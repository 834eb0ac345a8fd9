#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "model/entry.h"
#include "report/screenshot.h"
#include "session/command.h"
#include "session/session.h"

static bugpack_status add(bugpack_session *session, bp_provider_spec spec, bugpack_error *error) {
    spec.limit_bytes = session->config.artefact_limit_bytes;
    spec.timeout_ms = session->config.provider_timeout_ms;
    return bp_provider_list_add(session->context.providers, &spec, error);
}

static const char screenshot_name[] = "screenshot.png";

/* The host's provider of the screenshot. */
struct picture_source {
    bugpack_provider_callback *provide;
    void *context;
};

static int provide_picture(bugpack_writer *writer, void *context) {
    const struct picture_source *source = context;
    return bp_screenshot_provide(writer, source->provide, source->context);
}

/* Owned by the entry of the list. */
static bugpack_status add_screenshot(bugpack_session *session, bugpack_provider_callback *provider,
                                     void *context, bugpack_error *error) {
    struct picture_source *source = malloc(sizeof *source);
    if (source == NULL) {
        return bp_fail_memory(error, "register a provider");
    }
    *source = (struct picture_source){provider, context};
    return add(session,
               (bp_provider_spec){.name = screenshot_name,
                                  .form = BUGPACK_PROVIDE_BYTES,
                                  .provide = provide_picture,
                                  .context = source,
                                  .release = free},
               error);
}

/* NULL if a provider of this kind may have the name. */
static const char *refuse_name(const bugpack_session *session, const char *name,
                               bugpack_provider_kind kind) {
    if (name == NULL) {
        return "it is NULL";
    }
    if (kind == BUGPACK_PROVIDE_SCREENSHOT) {
        return strcmp(name, screenshot_name) == 0 ? NULL : "a screenshot is screenshot.png";
    }
    bool is_of_other = session->config.target_pid != 0 || session->config.without_process;
    bool is_of_target = is_of_other && strcmp(name, "crash.json") == 0;
    return is_of_target ? NULL : bp_entry_refuse(name); /* the host has seen the target's death */
}

static bugpack_status provide(bugpack_session *session, const char *name,
                              bugpack_provider_kind kind, bugpack_provider_callback *provider,
                              void *context, bugpack_error *error) {
    if ((unsigned)kind > BUGPACK_PROVIDE_SCREENSHOT) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "kind: %u is no bugpack_provider_kind",
                       (unsigned)kind);
    }
    const char *refusal = refuse_name(session, name, kind);
    if (refusal != NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the artefact name \"%s\" cannot be used: %s",
                       name == NULL ? "" : name, refusal);
    }
    if (provider == NULL) {
        return bp_fail(error, BUGPACK_ERR_INVALID, "the provider of \"%s\" is NULL", name);
    }
    return kind == BUGPACK_PROVIDE_SCREENSHOT
               ? add_screenshot(session, provider, context, error)
               : add(session,
                     (bp_provider_spec){
                         .name = name, .form = kind, .provide = provider, .context = context},
                     error);
}

bugpack_status bugpack_provide(bugpack_session *session, const char *name,
                               bugpack_provider_kind kind, bugpack_provider_callback *provider,
                               void *context, bugpack_error *error) {
    bp_call call;
    if (bp_session_enter(&call, session, "register a provider", error)) {
        call.status = provide(session, name, kind, provider, context, error);
    }
    return bp_session_leave(&call);
}

bugpack_status bugpack_provide_file(bugpack_session *session, const char *name, const char *path,
                                    bugpack_file_kind kind, uint64_t limit_bytes,
                                    bugpack_error *error) {
    const bp_file_plan plan = {
        .name = name, .path = path, .kind = kind, .limit_bytes = limit_bytes};
    return bp_session_provide_file(session, &plan, error);
}

bool bugpack_unprovide(bugpack_session *session, const char *name) {
    bp_call call;
    bool is_idle = false;
    if (name == NULL || bp_runner_is_inside_provider()) {
        return false;
    }
    if (bp_session_enter(&call, session, NULL, NULL)) {
        bool is_screenshot = strcmp(name, screenshot_name) == 0;
        is_idle = (is_screenshot || refuse_name(session, name, BUGPACK_PROVIDE_JSON) == NULL) &&
                  bp_provider_list_remove(session->context.providers, name);
    }
    (void)bp_session_leave(&call);
    return is_idle;
}
