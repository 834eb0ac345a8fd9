#include "probe/demangle.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const char lower_hex[] = "0123456789abcdef";

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

/* Takes "$LT$" or "$u7b$"; 0 for anything else. */
static char take_escape(const char **at) {
    static const struct {
        const char *name;
        char plain;
    } rows[] = {{"$SP$", '@'}, {"$BP$", '*'}, {"$RF$", '&'}, {"$LT$", '<'},
                {"$GT$", '>'}, {"$LP$", '('}, {"$RP$", ')'}, {"$C$", ','}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t length = strlen(rows[i].name);
        if (strncmp(*at, rows[i].name, length) == 0) {
            *at += length;
            return rows[i].plain;
        }
    }
    char *end = NULL;
    long code = strncmp(*at, "$u", 2) == 0 && strspn(*at + 2, lower_hex) == 2
                    ? strtol(*at + 2, &end, 16)
                    : 0;
    if (code < ' ' || code > '~' || *end != '$') {
        return 0;
    }
    *at = end + 1;
    return (char)code;
}

void bp_demangle_rust(char *name) {
    enum { hash_bytes = 16, end_bytes = hash_bytes + 3 };
    size_t length = strlen(name);
    if (length <= end_bytes || strncmp(name + length - end_bytes, "::h", 3) != 0 ||
        strspn(name + length - hash_bytes, lower_hex) != hash_bytes) {
        return;
    }
    name[length - end_bytes] = '\0';
    char *out = name;
    for (const char *at = name; *at != '\0';) {
        bool is_first = at == name || at[-1] == ':';
        at += is_first && at[0] == '_' && at[1] == '$' ? 1 : 0;
        char plain = *at == '$' ? take_escape(&at) : '\0';
        if (plain != '\0') {
            *out++ = plain;
        } else if (at[0] == '.' && at[1] == '.') {
            *out++ = ':';
            *out++ = ':';
            at += 2;
        } else {
            *out++ = *at++;
        }
    }
    *out = '\0';
}

char *bp_demangle(bp_demangler *demangle, const char *name) {
    int status = -1;
    char *plain = demangle != NULL ? demangle(name, NULL, NULL, &status) : NULL;
    if (plain != NULL) {
        bp_demangle_rust(plain);
    }
    return plain;
}
