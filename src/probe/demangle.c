#include "probe/demangle.h"

#include <dlfcn.h>
#include <string.h>

/* The library stays loaded: its code may be in use elsewhere in the process. */
bp_demangler *bp_demangler_get(bool is_host) {
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL | (is_host ? RTLD_NOLOAD : 0));
    bp_demangler *demangle = NULL;
    void *found = library != NULL ? dlsym(library, "__cxa_demangle") : NULL;
    memcpy(&demangle, &found, sizeof found);
    return demangle;
}

/* "S_", "S1_", "T_" and the like are references. Threefold with every third, 24 give 6,561 times
 * the length at most. */
bool bp_demangle_is_bounded(const char *name) {
    enum { name_max_bytes = 1024, reference_max = 24 };
    size_t length = strnlen(name, name_max_bytes + 1);
    unsigned count = 0;
    if (strncmp(name, "_Z", 2) != 0 || length > name_max_bytes) {
        return false;
    }
    for (const char *at = name; *at != '\0'; at++) {
        if (*at == 'S' || *at == 'T') {
            size_t digits = strspn(at + 1, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ");
            count += at[1 + digits] == '_';
        }
    }
    return count <= reference_max;
}

char *bp_demangle(bp_demangler *demangle, const char *name) {
    int status = -1;
    return demangle != NULL ? demangle(name, NULL, NULL, &status) : NULL;
}
