#include "platform/posix/allocator_symbol.h"

#include <dlfcn.h>
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

static bool describe(bp_symbol *symbol, Dl_info *ret_info) {
    const void *address = NULL;
    memcpy(&address, &symbol, sizeof address);
    return address != NULL && dladdr(address, ret_info) != 0;
}

const void *bp_symbol_object(bp_symbol *symbol) {
    Dl_info info = {0};
    return describe(symbol, &info) ? info.dli_fbase : NULL;
}

const char *bp_symbol_file(bp_symbol *symbol) {
    Dl_info info = {0};
    return describe(symbol, &info) && info.dli_fname != NULL ? info.dli_fname : "";
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
