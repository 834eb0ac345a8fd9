#include "platform/posix/allocator.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/status.h"

#if defined(__ELF__)
/*
 * dlsym finds only exported symbols, and an executable does not export a statically linked
 * allocator without -rdynamic. The linker binds a weak reference to what the program has anyway; it
 * pulls nothing in and is NULL when there is nothing.
 */
#define WEAK __attribute__((weak))
extern int mallctl(const char *, void *, size_t *, void *, size_t) WEAK;
extern int je_mallctl(const char *, void *, size_t *, void *, size_t) WEAK;
extern int _rjem_mallctl(const char *, void *, size_t *, void *, size_t) WEAK;
extern int MallocExtension_GetNumericProperty(const char *, size_t *) WEAK;
extern void mi_process_info(size_t *, size_t *, size_t *, size_t *, size_t *, size_t *, size_t *,
                            size_t *) WEAK;

static bp_symbol *find_linked(const char *name) {
    const struct {
        const char *name;
        bp_symbol *symbol;
    } linked[] = {
        {"mallctl", (bp_symbol *)mallctl},
        {"je_mallctl", (bp_symbol *)je_mallctl},
        {"_rjem_mallctl", (bp_symbol *)_rjem_mallctl},
        {"MallocExtension_GetNumericProperty", (bp_symbol *)MallocExtension_GetNumericProperty},
        {"mi_process_info", (bp_symbol *)mi_process_info}};
    for (size_t i = 0; i < sizeof linked / sizeof linked[0]; i++) {
        if (strcmp(name, linked[i].name) == 0) {
            return linked[i].symbol;
        }
    }
    return NULL;
}
#else
static bp_symbol *find_linked(const char *name) {
    (void)name;
    return NULL;
}
#endif

bp_symbol *bp_symbol_find(const char *name) {
    /* Data and function pointers have one size wherever there is a dlsym, but C has no cast for it.
     */
    void *address = dlsym(RTLD_DEFAULT, name);
    bp_symbol *symbol = NULL;
    memcpy(&symbol, &address, sizeof symbol);
    return symbol != NULL ? symbol : find_linked(name);
}

void bp_heap_reading_miss(bp_heap_reading *reading, const char *what, int system_errno) {
    bugpack_error detail = BUGPACK_ERROR_INIT;
    size_t length = strlen(reading->missing);
    (void)bp_fail_errno(&detail, system_errno, "%s%s", length > 0 ? "; " : "", what);
    if (length + strlen(detail.message) < sizeof reading->missing) {
        memcpy(reading->missing + length, detail.message, strlen(detail.message) + 1);
    }
}

bugpack_heap_state bp_heap_state_of(const char *allocator) {
    bugpack_heap_state state = BUGPACK_HEAP_STATE_INIT;
    (void)snprintf(state.allocator, sizeof state.allocator, "%s", allocator);
    return state;
}

/* mallctl(3) of jemalloc, under whatever name. */
typedef int mallctl_function(const char *name, void *old, size_t *old_bytes, void *fresh,
                             size_t fresh_bytes);

/* Reads a counter of the type that jemalloc(3) gives it. 0 or an errno. */
static int read_value(mallctl_function *ask, const char *name, void *value, size_t value_bytes) {
    size_t read_bytes = value_bytes;
    int result = ask(name, value, &read_bytes, NULL, 0);
    return result == 0 && read_bytes != value_bytes ? EINVAL : result;
}

/*
 * Advances the epoch, exactly once, and reads the counters. One that fails is left unknown and
 * noted in `missing`; all of them when the epoch fails. Only `state` and `missing` are set. False
 * when it is linked and the program has nothing of it.
 */
static bool read_counters(mallctl_function *ask, bp_heap_reading *reading) {
    reading->state = bp_heap_state_of("jemalloc");
    reading->missing[0] = '\0';
    /* Counters are as of the last advance of the epoch (jemalloc(3), "epoch"). */
    uint64_t epoch = 1;
    int result = ask("epoch", NULL, NULL, &epoch, sizeof epoch);
    if (result != 0) {
        bp_heap_reading_miss(reading, "epoch", result);
        return true;
    }
    bugpack_heap_state *state = &reading->state;
    const struct {
        const char *name;
        uint64_t *value;
    } sizes[] = {{"stats.allocated", &state->allocated_bytes},
                 {"stats.active", &state->active_bytes},
                 {"stats.resident", &state->resident_bytes},
                 {"stats.mapped", &state->mapped_bytes}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t size = 0;
        result = read_value(ask, sizes[i].name, &size, sizeof size);
        if (result == 0) {
            *sizes[i].value = size;
        } else {
            bp_heap_reading_miss(reading, sizes[i].name, result);
        }
    }
    unsigned arena_count = 0;
    result = read_value(ask, "arenas.narenas", &arena_count, sizeof arena_count);
    if (result == 0) {
        state->narenas = arena_count;
    } else {
        bp_heap_reading_miss(reading, "arenas.narenas", result);
    }
    /*
     * Nothing allocated and no page held for it, or nothing but jemalloc's own: jemalloc 5 gives
     * the calling thread a cache and counts its bytes. 4096 is all arenas (MALLCTL_ARENAS_ALL,
     * since 5.0); older versions have no such sum.
     */
    if (state->allocated_bytes == 0 && state->active_bytes == 0) {
        return false;
    }
    size_t own_bytes = 0;
    return state->allocated_bytes == BUGPACK_HEAP_UNKNOWN ||
           read_value(ask, "stats.arenas.4096.internal", &own_bytes, sizeof own_bytes) != 0 ||
           own_bytes == 0 || state->allocated_bytes > own_bytes;
}

/* As installed, with the prefix of embedding programs, and with that of the Rust crates. */
static const char *const mallctl_names[] = {"mallctl", "je_mallctl", "_rjem_mallctl"};

/*
 * A jemalloc counts when it has allocated something, even if malloc is another: a program in Rust
 * may have one beside the C library's. One that fails to answer counts as well.
 */
static bool read_jemalloc(bp_heap_reading *reading) {
    for (size_t i = 0; i < sizeof mallctl_names / sizeof mallctl_names[0]; i++) {
        mallctl_function *ask = (mallctl_function *)bp_symbol_find(mallctl_names[i]);
        if (ask == NULL) {
            continue;
        }
        if (read_counters(ask, reading)) {
            reading->unused[0] = '\0';
            return true;
        }
        (void)snprintf(reading->unused, sizeof reading->unused,
                       "jemalloc (%s) is linked, and has given nothing out", mallctl_names[i]);
    }
    return false;
}

bugpack_status bp_allocator_read_with(bp_allocator_reader *read_default,
                                      bp_heap_reading *ret_reading, bugpack_error *error) {
    bp_heap_reading reading = {.state = BUGPACK_HEAP_STATE_INIT};
    if (!read_jemalloc(&reading)) {
        reading.missing[0] = '\0'; /* of the jemalloc that is not in use */
        bugpack_error detail = BUGPACK_ERROR_INIT;
        bugpack_status status = read_default(&reading, &detail);
        if (status != BUGPACK_OK) {
            return reading.unused[0] == '\0'
                       ? bp_fail(error, status, "%s", detail.message)
                       : bp_fail(error, status, "%s; %s", reading.unused, detail.message);
        }
    }
    *ret_reading = reading;
    return BUGPACK_OK;
}
