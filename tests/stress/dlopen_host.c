/*
 * A host that loads the shared library by name, as a plugin would be, and unloads it again: a log
 * call allocates nothing there either, a provider that hangs may return after the unloading, and a
 * session may be closed by a destructor.
 */
#include <bugpack/bugpack.h>

#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include "support/check.h"
#include "support/failing_malloc.h"
#include "support/report_reader.h"
#include "support/temp_dir.h"

static struct {
    void *library;
    bugpack_status (*open)(const bugpack_options *, bugpack_session **, bugpack_error *);
    void (*log_bytes)(bugpack_session *, bugpack_level, const char *, const void *, size_t);
    bugpack_status (*provide)(bugpack_session *, const char *, bugpack_provider_kind,
                              bugpack_provider_callback *, void *, bugpack_error *);
    bugpack_status (*report)(bugpack_session *, const bugpack_report_request *,
                             bugpack_report_result *, bugpack_error *);
    bugpack_status (*report_async)(bugpack_session *, const bugpack_report_request *,
                                   bugpack_report_callback *, void *, bugpack_error *);
    void (*close)(bugpack_session *);
} api;

/* POSIX lets a pointer from dlsym be called; C has no cast that says so without a warning. */
static void find(const char *name, void *ret_function) {
    void *symbol = dlsym(api.library, name);
    CHECK(symbol != NULL);
    *(void **)ret_function = symbol;
}

static void load(void) {
    api.library = dlopen(BUGPACK_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (api.library == NULL) {
        (void)fprintf(stderr, "%s\n", dlerror());
    }
    CHECK(api.library != NULL);
    find("bugpack_open", &api.open);
    find("bugpack_log_bytes", &api.log_bytes);
    find("bugpack_provide", &api.provide);
    find("bugpack_report", &api.report);
    find("bugpack_report_async", &api.report_async);
    find("bugpack_close", &api.close);
}

/* glibc ends the process when it has no memory for a library's thread-local variables. */
static void *log_without_memory(void *session) {
    failing_malloc_only_here(); /* the session's own threads may still be starting */
    failing_malloc_arm(1, true);
    api.log_bytes(session, BUGPACK_LEVEL_INFO, NULL, "x", 1);
    CHECK(failing_malloc_disarm() == 0);
    return NULL;
}

static void logs_for_the_first_time_on_a_thread_without_memory(bugpack_session *session) {
    pthread_t thread;
    if (failing_malloc_is_available()) {
        CHECK(pthread_create(&thread, NULL, log_without_memory, session) == 0);
        CHECK(pthread_join(thread, NULL) == 0);
    }
}

static sem_t may_return, is_returning;

static int hang(bugpack_writer *writer, void *context) {
    (void)writer;
    (void)context;
    while (sem_wait(&may_return) != 0) {}
    (void)sem_post(&is_returning);
    return 0;
}

static bugpack_session *closing;
static char closing_path[300];

/* A destructor, under the dynamic linker's lock. */
static void report_and_close(void) {
    bugpack_report_request request = BUGPACK_REPORT_REQUEST_INIT;
    request.output_path = closing_path;
    CHECK(api.report_async(closing, &request, NULL, NULL, NULL) == BUGPACK_OK);
    api.close(closing);
}

/* Providers that need that lock are abandoned. Otherwise the close would take ten minutes each. */
static void closes_in_a_destructor(bugpack_options options, const temp_dir *dir) {
#if defined(UNLOADED_MODULE) && defined(__GLIBC__) && (defined(__x86_64__) || defined(__aarch64__))
    if (access("/proc/self/syscall", R_OK) != 0) {
        return; /* then the limit has to pass */
    }
    void *module = dlopen(UNLOADED_MODULE, RTLD_NOW | RTLD_LOCAL);
    CHECK(module != NULL);
    void (**on_unload)(void) = dlsym(module, "on_unload");
    CHECK(on_unload != NULL);
    *on_unload = report_and_close;
    options.limits.provider_timeout_ms = 600000;
    options.stacks = BUGPACK_STACKS_BLOCKED;
    (void)snprintf(closing_path, sizeof closing_path, "%s/closing.zip", dir->path);
    CHECK(api.open(&options, &closing, NULL) == BUGPACK_OK);
    CHECK(dlclose(module) == 0);
    CHECK(report_entry_contains(closing_path, "manifest.json",
                                "it waits for a lock of the thread that closes the session"));
#else
    (void)options;
    (void)dir;
    (void)report_and_close;
#endif
}

int main(void) {
    temp_dir dir;
    CHECK(temp_dir_make(&dir));
    CHECK(sem_init(&may_return, 0, 0) == 0 && sem_init(&is_returning, 0, 0) == 0);
    load();
    bugpack_options options = BUGPACK_OPTIONS_INIT;
    options.app_name = "plugin";
    options.report_dir = dir.path;
    options.sample_window_ms = BUGPACK_OFF;
    options.recorder.history_interval_ms = BUGPACK_OFF;
    options.limits.provider_timeout_ms = 500;
    options.stacks = BUGPACK_STACKS_NONE; /* which take longer than that under a sanitizer */
    bugpack_session *session = NULL;
    CHECK(api.open(&options, &session, NULL) == BUGPACK_OK);
    logs_for_the_first_time_on_a_thread_without_memory(session);
    CHECK(api.provide(session, "hang.txt", BUGPACK_PROVIDE_TEXT, hang, NULL, NULL) == BUGPACK_OK);
    bugpack_report_result result = BUGPACK_REPORT_RESULT_INIT;
    CHECK(api.report(session, NULL, &result, NULL) == BUGPACK_OK && result.missing_count == 1);
    api.close(session);
    closes_in_a_destructor(options, &dir);
    CHECK(dlclose(api.library) == 0);
    CHECK(sem_post(&may_return) == 0); /* its thread now returns into the library */
    while (sem_wait(&is_returning) != 0) {}
    CHECK(dlopen(BUGPACK_LIBRARY, RTLD_NOW | RTLD_NOLOAD) != NULL); /* whoever is inside is safe */
    temp_dir_remove(&dir);
    return 0;
}
