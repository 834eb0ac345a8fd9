#include "cli/input.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "cli/text.h"

/*
 * What a file's own name may contribute: with the folder and a number behind it, it stays under the
 * 200 bytes that an entry may have. A longer extension than this is not one.
 */
enum { own_name_max = 160, extension_max = 16, number_bytes = 24 };

/* Where the extension of an entry's name begins: its last dot, or its end. */
static size_t extension_at(const char *name) {
    const char *slash = strrchr(name, '/');
    const char *base = slash != NULL ? slash + 1 : name;
    const char *dot = strrchr(base, '.');
    size_t end = strlen(name);
    bool has_extension = dot != NULL && dot != base;
    return has_extension && end - (size_t)(dot - name) <= extension_max ? (size_t)(dot - name)
                                                                        : end;
}

static bool is_allowed(uint32_t code_point) {
    bool is_control = code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0);
    return code_point != BP_CLI_TEXT_INVALID && !is_control && code_point != '\\' &&
           code_point != ':' && code_point != '/';
}

/* Cuts the middle out, so that the extension stays, without splitting a character. */
static void shorten(char *name) {
    size_t length = strlen(name);
    size_t extension = extension_at(name);
    if (length <= own_name_max) {
        return;
    }
    size_t stem_max = own_name_max - (length - extension);
    size_t cut = 0;
    for (;;) {
        uint32_t code_point;
        size_t step = bp_cli_text_next(name + cut, &code_point);
        if (cut + step > stem_max) {
            break;
        }
        cut += step;
    }
    memmove(name + cut, name + extension, length - extension + 1);
}

/* A name that every entry may have, made of a path's last component; NULL without memory. */
static char *own_name_new(const char *path) {
    size_t end = strlen(path);
    while (end > 0 && path[end - 1] == '/') {
        end--;
    }
    size_t begin = end;
    while (begin > 0 && path[begin - 1] != '/') {
        begin--;
    }
    /* One byte more than the component and its NUL, for "_" in place of nothing. */
    char *name = calloc(end - begin + 2, 1);
    if (name == NULL) {
        return NULL;
    }
    size_t used = 0;
    for (size_t at = begin; at < end;) {
        uint32_t code_point;
        size_t length = bp_cli_text_next(path + at, &code_point);
        if (is_allowed(code_point)) {
            memcpy(name + used, path + at, length);
            used += length;
        } else {
            name[used++] = '_';
        }
        at += length;
    }
    bool is_special = strcmp(name, "") == 0 || strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
    if (is_special) {
        name[0] = '_';
        name[1] = '\0';
    }
    shorten(name);
    return name;
}

static bool is_taken(const bp_cli_inputs *inputs, const char *name) {
    for (size_t i = 0; i < inputs->count; i++) {
        if (strcasecmp(inputs->items[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Folder and base, with a number before the extension when that name is taken. */
static char *free_name_new(const bp_cli_inputs *inputs, const char *folder, const char *base,
                           size_t base_bytes) {
    size_t plain_bytes = strlen(folder) + base_bytes;
    char *plain = malloc(plain_bytes + 1);
    char *numbered = malloc(plain_bytes + number_bytes);
    if (plain == NULL || numbered == NULL) {
        free(plain);
        free(numbered);
        return NULL;
    }
    memcpy(plain, folder, strlen(folder));
    memcpy(plain + strlen(folder), base, base_bytes);
    plain[plain_bytes] = '\0';
    int stem = (int)extension_at(plain);
    (void)snprintf(numbered, plain_bytes + number_bytes, "%s", plain);
    for (size_t number = 2; is_taken(inputs, numbered); number++) {
        (void)snprintf(numbered, plain_bytes + number_bytes, "%.*s-%zu%s", stem, plain, number,
                       plain + stem);
    }
    free(plain);
    return numbered;
}

static bool make_room(bp_cli_inputs *inputs) {
    if (inputs->count < inputs->capacity) {
        return true;
    }
    size_t capacity = inputs->capacity == 0 ? 8 : 2 * inputs->capacity;
    bp_cli_input *items = realloc(inputs->items, capacity * sizeof *items);
    if (items == NULL) {
        return false;
    }
    inputs->items = items;
    inputs->capacity = capacity;
    return true;
}

bool bp_cli_inputs_add(bp_cli_inputs *inputs, bugpack_file_kind kind, const char *folder,
                       const char *name, size_t name_bytes, const char *path) {
    if (!make_room(inputs)) {
        return false;
    }
    char *own_name = NULL;
    if (name == NULL) {
        own_name = own_name_new(path);
        if (own_name == NULL) {
            return false;
        }
        name = own_name;
        name_bytes = strlen(own_name);
    }
    char *entry = free_name_new(inputs, folder, name, name_bytes);
    free(own_name);
    if (entry == NULL) {
        return false;
    }
    inputs->items[inputs->count++] = (bp_cli_input){path, entry, kind};
    return true;
}

void bp_cli_inputs_release(bp_cli_inputs *inputs) {
    for (size_t i = 0; i < inputs->count; i++) {
        free(inputs->items[i].name);
    }
    free(inputs->items);
    *inputs = (bp_cli_inputs){NULL, 0, 0};
}
