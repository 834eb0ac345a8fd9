#include "probe/libdw.h"

#include <dlfcn.h>
#include <pthread.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static bp_libdw functions;
static bool is_loaded;

/* A pointer to an object is copied into one to a function, as POSIX has it for dlsym. */
static bool load(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static void load_all(void) {
    /* libelf's functions are found through it as well: it is what libdw itself is linked with. */
    void *library = dlopen("libdw.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return;
    }
    is_loaded = true;
#define BP_LIBDW_LOAD(name) is_loaded = load(library, #name, &functions.name) && is_loaded;
    BP_LIBDW_FUNCTIONS(BP_LIBDW_LOAD)
#undef BP_LIBDW_LOAD
    if (is_loaded) {
        (void)functions.elf_version(EV_CURRENT);
    }
}

const bp_libdw *bp_libdw_get(void) {
    (void)pthread_once(&once, load_all);
    return is_loaded ? &functions : NULL;
}
