#include "platform/darwin/procargs.h"

#include <stdint.h>
#include <string.h>

/*
 * The arguments follow the path, which is padded to the size of a pointer. NULs after the padding
 * are empty arguments and must be counted: otherwise the count would run on into the environment.
 */
static const char *find_arguments(const char *path, const char *path_end, const char *end) {
    size_t padded_bytes = ((size_t)(path_end - path) + 1 + 7) & ~(size_t)7;
    const char *last = (size_t)(end - path) > padded_bytes ? path + padded_bytes : end;
    const char *at = path_end;
    while (at < last && *at == '\0') {
        at++;
    }
    return at;
}

bool bp_darwin_parse_procargs(const char *memory, size_t memory_bytes,
                              bp_darwin_procargs *ret_args) {
    int32_t count;
    if (memory_bytes < sizeof count) {
        return false;
    }
    memcpy(&count, memory, sizeof count);
    if (count < 0) {
        return false;
    }
    const char *path = memory + sizeof count;
    const char *end = memory + memory_bytes;
    const char *path_end = memchr(path, '\0', (size_t)(end - path));
    bp_darwin_procargs args = {0};
    if (path_end == NULL) {
        return false; /* the arguments begin after the path */
    }
    args.executable = path_end > path ? path : NULL;
    const char *at = find_arguments(path, path_end, end);
    args.arguments = at;
    for (int32_t i = 0; i < count && at < end; i++) {
        const char *argument_end = memchr(at, '\0', (size_t)(end - at));
        at = argument_end != NULL ? argument_end + 1 : end;
    }
    args.arguments_bytes = (size_t)(at - args.arguments);
    *ret_args = args;
    return true;
}
