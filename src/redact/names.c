#include "redact/names.h"

#include <string.h>

void bp_names_open(bp_names *names, const bp_keywords *keywords, const unsigned char *key,
                   size_t byte_count) {
    names->depth = names->count > 0 ? names->depth + 1 : 0;
    if (key == NULL || byte_count > BP_NAME_MAX_BYTES || names->count == BP_NAMES_MAX) {
        return;
    }
    bp_name *name = &names->names[names->count];
    memcpy(name->text, key, byte_count);
    name->text[byte_count] = BP_NAME_END;
    name->size = (uint8_t)(byte_count + 1);
    if (bp_keywords_are_in(keywords, name->text, name->size)) {
        names->depth += names->count == 0;
        name->depth = names->depth;
        names->count++;
    }
}

void bp_names_close(bp_names *names) {
    if (names->count > 0 && names->names[names->count - 1].depth == names->depth) {
        names->count--;
    }
    names->depth = names->count > 0 ? names->depth - 1 : 0;
}
