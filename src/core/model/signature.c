#include "model/signature.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/buffer.h"
#include "base/utf8.h"
#include "model/fields.h"

/* --- names -------------------------------------------------------------------------------- */

/* Removes what is between `at` and `end`. */
static void cut(char *at, const char *end) {
    memmove(at, end, strlen(end) + 1);
}

/* "list<int>::take" without the arguments, which may be those of another instance. The brackets of
 * operators stay, and those of "<module>" and of "<T as Trait>::take". */
static void cut_arguments(char *name) {
    for (char *at = name; (at = strchr(at, '<')) != NULL;) {
        size_t depth = 0;
        const char *end = at;
        do {
            depth += *end == '<';
            depth -= *end == '>' && end[-1] != '-';
            end++;
        } while (depth > 0 && *end != '\0');
        if (at == name || depth > 0 || strstr(name, "operator") != NULL) {
            at++;
        } else {
            cut(at, end);
        }
    }
}

/* The numbers of lambdas, closures and copies: the digits after one of these words. */
static void cut_numbers(char *name) {
    static const char *const words[] = {"#", "'lambda", ".func", ".lto_priv.", NULL};
    for (size_t i = 0; words[i] != NULL; i++) {
        for (char *at = name; (at = strstr(at, words[i])) != NULL;) {
            at += strlen(words[i]);
            cut(at, at + strspn(at, "0123456789"));
        }
    }
    char *dot = strrchr(name, '.');
    if (dot != NULL && dot > name && dot[1] != '\0' &&
        dot[1 + strspn(dot + 1, "0123456789")] == '\0') {
        *dot = '\0';
    }
}

/* The hash of a build of Rust, demangled and not: "core::take::h0123456789abcdef", "…17h…E". */
static void cut_hash(char *name) {
    enum { digit_count = 16 };
    size_t length = strlen(name);
    bool is_mangled = strncmp(name, "_ZN", 3) == 0 && name[length - 1] == 'E';
    const char *mark = is_mangled ? "17h" : "::h";
    size_t tail = digit_count + (is_mangled ? 1 : 0);
    if (length > tail + 3) {
        char *at = name + length - tail;
        bool is_hash =
            strspn(at, "0123456789abcdef") >= digit_count && memcmp(at - 3, mark, 3) == 0;
        at[-3] = is_hash ? '\0' : at[-3];
    }
}

/* "memchr::find" of "_RNvCs7qp2U7fqm6G_6memchr4find" (rustc-dev-guide, Rust v0): the identifiers
 * without the hash of the crate, which is behind an s. */
static void keep_identifiers(char *name) {
    char *out = name;
    for (const char *at = name + 2; *at != '\0' && *at != '.';) {
        size_t hash = *at == 's' ? 1 + strspn(at + 1, "0123456789abcdefghijklmnopqrstuvwxyz"
                                                      "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
                                 : 0;
        if (hash > 0 && at[hash] == '_') {
            at += hash + 1;
        } else if (isdigit((unsigned char)*at)) {
            char *text;
            unsigned long length = strtoul(at, &text, 10);
            text += *text == '_';
            length = length < strlen(text) ? length : strlen(text);
            if (out > name && length > 0) {
                *out++ = ':';
            }
            memmove(out, text, length);
            out += length;
            at = text + length;
        } else {
            at++;
        }
    }
    *out = '\0';
}

/* The name of a function as each build has it; "" for none. */
static void print_name(const bp_frame_text *frame, char out[BP_FRAME_NAME_BYTES]) {
    static const size_t most_bytes = 4096;
    bp_buffer name;
    bp_buffer_init(&name, most_bytes);
    out[0] = '\0';
    if (bp_frame_append_name(&name, frame) && bp_buffer_append_char(&name, '\0') == BUGPACK_OK) {
        char *text = (char *)name.data;
        const char *source = frame->is_python && frame->source != NULL ? frame->source : "";
        const char *slash = strrchr(source, '/');
        source = slash != NULL ? slash + 1 : source;
        cut_hash(text);
        if (strncmp(text, "_R", 2) == 0) {
            keep_identifiers(text);
        }
        cut_arguments(text);
        cut_numbers(text);
        bp_utf8_copy(out, BP_FRAME_NAME_BYTES, text);
        size_t length = strlen(out);
        if (source[0] != '\0' && length + strlen(source) + sizeof " ()" <= BP_FRAME_NAME_BYTES) {
            (void)snprintf(out + length, BP_FRAME_NAME_BYTES - length, " (%s)", source);
        }
    }
    bp_buffer_release(&name);
}

/* Templates and generic functions of the language's library are compiled into the program. */
static bool is_of_language(const char *name) {
    static const char *const starts[] = {"std::", "__gnu_cxx::", "core::", "alloc::", NULL};
    return bp_array_has_start(starts, name);
}

/* --- stacks ------------------------------------------------------------------------------- */

/* "/usr/lib/x86_64-linux-gnu/libgtk-3.so.0"; not "/usr/lib/viewer/libdecode.so". */
static bool is_of_system(const char *module) {
    static const char *const places[] = {"/lib/", "/lib64/", "/usr/lib/", "/usr/lib64/", NULL};
    for (size_t i = 0; module != NULL && places[i] != NULL; i++) {
        size_t length = strlen(places[i]);
        const char *rest = module + length;
        if (strncmp(module, places[i], length) == 0) {
            const char *slash = strchr(rest, '/');
            const char *triplet = strstr(rest, "-linux-");
            return slash == NULL ||
                   (strchr(slash + 1, '/') == NULL && triplet != NULL && triplet < slash);
        }
    }
    return false;
}

void bp_signature_take(void *context, const bp_frame_text *frame) {
    bp_signature_stack *stack = context;
    char name[BP_FRAME_NAME_BYTES];
    bool is_library = bp_frame_is_of_library(frame);
    if (frame->is_signal || frame->is_inlined || (stack->is_over && !frame->is_python)) {
        return;
    }
    if (!frame->is_python && bp_frame_is_of_interpreter(frame)) {
        stack->is_over = true; /* the functions of Python follow */
        return;
    }
    if (is_library && !frame->is_python) {
        stack->is_over = frame->symbol != NULL && strncmp(frame->symbol, "__libc_start_", 13) == 0;
        return;
    }
    print_name(frame, name);
    is_library = is_library || is_of_system(frame->module) || is_of_language(name);
    bp_signature_names *names = is_library ? &stack->library : &stack->own;
    if (name[0] == '\0') {
        const char *slash = frame->module != NULL ? strrchr(frame->module, '/') : NULL;
        if (!is_library && slash != NULL && names->count == 0 && stack->module[0] == '\0') {
            bp_utf8_copy(stack->module, sizeof stack->module, slash + 1);
        }
        return;
    }
    bool is_repeated = names->count > 0 && strcmp(names->names[names->count - 1], name) == 0;
    if (!is_repeated && names->count < BP_SIGNATURE_FRAME_MAX) {
        memcpy(names->names[names->count++], name, sizeof name);
    }
}

enum { place_bytes = BP_SIGNATURE_FRAME_MAX * (BP_FRAME_NAME_BYTES + 3) };

static bool print_place(const bp_signature_stack *stack, char out[place_bytes]) {
    const bp_signature_names *names = stack->own.count > 0 ? &stack->own : &stack->library;
    bool is_nameless = stack->own.count == 0 && stack->module[0] != '\0';
    (void)snprintf(out, place_bytes, "%s%s%s", is_nameless ? stack->module : names->names[0],
                   !is_nameless && names->count > 1 ? " < " : "",
                   !is_nameless && names->count > 1 ? names->names[1] : "");
    return !is_nameless && names->count > 0;
}

static int compare_places(const void *one, const void *other) {
    return strcmp(one, other);
}

void bp_signature_make(bp_signature *ret_signature, const char *cause, const char *detail,
                       bool is_named, const bp_signature_stack *stacks, size_t stack_count) {
    char places[BP_SIGNATURE_STACK_MAX][place_bytes], text[BP_SIGNATURE_BYTES];
    size_t count = 0, used;
    for (size_t i = 0; i < stack_count && count < BP_SIGNATURE_STACK_MAX; i++) {
        is_named = print_place(&stacks[i], places[count]) || is_named;
        count += places[count][0] != '\0';
    }
    qsort(places, count, sizeof places[0], compare_places);
    used = (size_t)snprintf(text, sizeof text, "%.40s%s%.128s", cause, detail[0] != '\0' ? " " : "",
                            detail);
    for (size_t i = 0; i < count && used < sizeof text; i++) {
        if (i > 0 && strcmp(places[i], places[i - 1]) == 0) {
            continue;
        }
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i == 0 ? ": " : " | ",
                                 places[i]);
    }
    bp_utf8_copy(ret_signature->text, sizeof ret_signature->text, text);
    ret_signature->is_weak = !is_named;
}

void bp_signature_add(bp_json *json, const bp_signature *signature) {
    bp_model_add_known_text(json, "signature", signature->text);
    bp_model_add_flag(json, "weak_signature", signature->text[0] != '\0' && signature->is_weak);
}
