#include "archive/directory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "base/utf8.h"

static bool is_bad_component(const char *component, size_t length) {
    return length == 0 || (length == 1 && component[0] == '.') ||
           (length == 2 && component[0] == '.' && component[1] == '.');
}

const char *bp_directory_refuse_name(const char *name, size_t byte_count) {
    if (byte_count == 0 || byte_count > BP_DIRECTORY_NAME_MAX) {
        return "its name must have 1 to 255 bytes";
    }
    if (!bp_utf8_is_valid(name, byte_count)) {
        return "its name is not valid UTF-8";
    }
    for (size_t i = 0; i < byte_count; i++) {
        unsigned char byte = (unsigned char)name[i];
        if (byte < 0x20 || byte == 0x7F || byte == '\\' || byte == ':') {
            return "its name holds a control character, a backslash or a colon";
        }
    }
    if (name[byte_count - 1] == '/') {
        return "it is a directory";
    }
    for (size_t begin = 0, i = 0; i <= byte_count; i++) {
        if (i == byte_count || name[i] == '/') {
            if (is_bad_component(name + begin, i - begin)) {
                return "its name has a component that is empty, \".\" or \"..\"";
            }
            begin = i + 1;
        }
    }
    return NULL;
}

/* ASCII alone, whatever locale the program is in. */
static int lower(char byte) {
    return byte >= 'A' && byte <= 'Z' ? byte - 'A' + 'a' : (unsigned char)byte;
}

static int compare_names(const void *one, const void *other) {
    const char *left = *(const char *const *)one;
    const char *right = *(const char *const *)other;
    while (*left != '\0' && lower(*left) == lower(*right)) {
        left++;
        right++;
    }
    return lower(*left) - lower(*right);
}

bugpack_status bp_directory_find_double(const bp_directory *directory, const char **ret_name,
                                        bugpack_error *error) {
    const char *found = NULL;
    const char **names = calloc(directory->entry_count, sizeof *names);
    if (names == NULL) {
        return bp_fail_memory(error, "read a zip");
    }
    for (size_t i = 0; i < directory->entry_count; i++) {
        names[i] = directory->entries[i].name;
    }
    qsort(names, directory->entry_count, sizeof *names, compare_names);
    for (size_t i = 1; i < directory->entry_count && found == NULL; i++) {
        found = compare_names(&names[i - 1], &names[i]) == 0 ? names[i] : NULL;
    }
    free(names);
    *ret_name = found;
    return BUGPACK_OK;
}
