#include "model/frame_text.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/utf8.h"

static const char ellipsis[] = "\u2026";
static const char signal_words[] = "<signal handler called>";
enum { list_bytes = 160 }; /* of what is before the last ellipsis */

/* --- names of C++ and Rust ------------------------------------------------------------------ */

/* A part of a text. */
typedef struct span {
    const char *at, *end;
} span;

/* Where the parameters begin that end the name; NULL: it has none. Other parentheses are of a
 * function around it, of its template's arguments, or of "operator()". */
static const char *find_parameters(const char *text) {
    static const char word[] = "operator";
    size_t depth = 1, length = sizeof word - 1;
    const char *at = strrchr(text, ')');
    if (at == NULL || strpbrk(at, ":>}") != NULL) {
        return NULL;
    }
    while (depth > 0 && at > text) {
        at--;
        depth += *at == ')';
        depth -= *at == '(';
    }
    bool is_call = (size_t)(at - text) >= length && memcmp(at - length, word, length) == 0;
    return depth == 0 && !is_call ? at : NULL;
}

/* The name without its parameters and what follows them, and without the result's type, which a
 * template has. Operators keep that, as their names may have blanks and brackets. */
static span find_name(const char *text) {
    const char *parameters = find_parameters(text);
    span name = {text, parameters != NULL ? parameters : text + strlen(text)};
    bool is_operator = strstr(text, "operator") != NULL;
    size_t depth = 0;
    for (const char *at = name.end; at > text && !is_operator; at--) {
        depth += strchr(">)]}", at[-1]) != NULL;
        depth -= depth > 0 && strchr("<([{", at[-1]) != NULL;
        if (at[-1] == ' ' && depth == 0) {
            name.at = at;
            break;
        }
    }
    return name.at < name.end ? name : (span){text, text + strlen(text)};
}

/* --- other names ---------------------------------------------------------------------------- */

/* "wait@@GLIBC_2.2", "work.constprop.0": what stands before the version, or the mark of a clone. */
static span plain_symbol(const char *symbol) {
    static const char *const clones[] = {".constprop.", ".isra.", ".part.",     ".cold",
                                         ".lto_priv.",  ".llvm.", ".localalias"};
    span name = {symbol, symbol + strcspn(symbol, "@")};
    for (size_t i = 0; i < sizeof clones / sizeof clones[0]; i++) {
        const char *found = strstr(symbol, clones[i]);
        name.end = found != NULL && found > symbol && found < name.end ? found : name.end;
    }
    return name;
}

/* As it is in the source; NULL: it is a plain symbol, or there is none. */
static const char *name_as_written(const bp_frame_text *frame) {
    bool is_written = frame->demangled == NULL && frame->symbol != NULL && !frame->is_python &&
                      strchr(frame->symbol, '<') != NULL;
    return is_written ? frame->symbol : frame->demangled;
}

/* "take" of "main.<locals>.take": what stands before is around the function. */
static span python_name(const char *name) {
    static const char mark[] = "<locals>.";
    for (const char *at = name; (at = strstr(at, mark)) != NULL;) {
        at += sizeof mark - 1;
        name = *at != '\0' ? at : name;
    }
    return (span){name, name + strlen(name)};
}

static span name_of(const bp_frame_text *frame) {
    const char *written = name_as_written(frame);
    span name = {"", ""};
    if (frame->is_signal) {
        name = (span){signal_words, signal_words + sizeof signal_words - 1};
    } else if (written != NULL) {
        name = find_name(written);
    }
    if (frame->is_python && frame->symbol != NULL) {
        return python_name(frame->symbol);
    }
    return name.at == name.end && frame->symbol != NULL ? plain_symbol(frame->symbol) : name;
}

/* " (app.py:12)" */
static void print_python_place(const bp_frame_text *frame, char out[BP_FRAME_NAME_BYTES / 2]) {
    enum { file_max = 17 };
    const char *file = bp_file_base_name(frame->source);
    size_t length = strlen(file);
    char line[24] = "";
    if (frame->line > 0) {
        (void)snprintf(line, sizeof line, ":%" PRIu64, frame->line);
    }
    bool is_cut = length > file_max;
    size_t kept = is_cut ? bp_utf8_cut(file, length, file_max) : length;
    (void)snprintf(out, BP_FRAME_NAME_BYTES / 2, " (%.*s%s%.8s)", (int)kept, file,
                   is_cut ? ellipsis : "", line);
}

void bp_frame_short_name(const bp_frame_text *frame, char out[BP_FRAME_NAME_BYTES]) {
    char offset[BP_FRAME_NAME_BYTES / 2] = "";
    span name = name_of(frame);
    if (frame->is_python && frame->source != NULL) {
        print_python_place(frame, offset);
    } else if (name.at == name.end && frame->module != NULL) {
        const char *base = bp_file_base_name(frame->module);
        name = (span){base, base + strlen(base)};
        (void)snprintf(offset, sizeof offset, "+0x%" PRIx64, frame->file_address);
    } else if (name.at == name.end) {
        (void)snprintf(offset, sizeof offset, "0x%" PRIx64, frame->address);
    }
    size_t length = (size_t)(name.end - name.at);
    size_t room = BP_FRAME_NAME_BYTES - 1 - strlen(offset);
    bool is_cut = length > room;
    length = is_cut ? bp_utf8_cut(name.at, length, room - (sizeof ellipsis - 1)) : length;
    (void)snprintf(out, BP_FRAME_NAME_BYTES, "%.*s%s%s", (int)length, name.at,
                   is_cut ? ellipsis : "", offset);
}

bool bp_frame_append_name(bp_buffer *out, const bp_frame_text *frame) {
    span name = name_of(frame);
    (void)bp_buffer_append(out, name.at, (size_t)(name.end - name.at));
    return name.at < name.end;
}

/* --- whose code it is ------------------------------------------------------------------------ */

/* "/usr/lib/python3.11/threading.py", "<frozen runpy>"; not what was installed beside them. */
static bool comes_with_python(const char *source) {
    return strncmp(source, "<frozen ", 8) == 0 ||
           ((strstr(source, "/lib/python3") != NULL || strstr(source, "/lib64/python3") != NULL) &&
            strstr(source, "/site-packages/") == NULL && strstr(source, "/dist-packages/") == NULL);
}

bool bp_frame_is_of_interpreter(const bp_frame_text *frame) {
    const char *name = frame->module != NULL ? bp_file_base_name(frame->module) : "";
    return strncmp(name, "libpython", 9) == 0 || strncmp(name, "python", 6) == 0;
}

bool bp_frame_is_of_library(const bp_frame_text *frame) {
    static const char *const libraries[] = {"libc.so",     "libc-2.", "libpthread",
                                            "ld-linux",    "ld-2.",   "libstdc++.so",
                                            "libgcc_s.so", "ld-musl", NULL};
    if (frame->is_python) {
        return frame->source != NULL && comes_with_python(frame->source);
    }
    return frame->module != NULL && bp_array_has_start(libraries, bp_file_base_name(frame->module));
}

/* --- lines and lists ------------------------------------------------------------------------ */

void bp_frame_append_plain(bp_buffer *out, const char *text, size_t byte_count) {
    for (size_t i = 0; i < byte_count && text[i] != '\0'; i++) {
        unsigned char byte = (unsigned char)text[i];
        (void)bp_buffer_append_char(out, byte < 0x20 || byte == 0x7f ? '?' : text[i]);
    }
}

void bp_frame_append_line(bp_buffer *out, const bp_frame_text *frame, size_t number) {
    (void)bp_buffer_printf(out, "#%-2zu ", number);
    if (!frame->is_python) {
        (void)bp_buffer_printf(out, "0x%016" PRIx64 " ", frame->address);
    }
    (void)bp_buffer_append_text(out, "in ");
    if (frame->is_signal) {
        (void)bp_buffer_append_text(out, signal_words);
    } else if (frame->demangled != NULL) { /* has its parameters, unless it is no function */
        bp_frame_append_plain(out, frame->demangled, SIZE_MAX);
    } else {
        const char *symbol = frame->symbol != NULL ? frame->symbol : "??";
        size_t length = frame->is_python ? SIZE_MAX : strcspn(symbol, "@"); /* no version */
        bp_frame_append_plain(out, symbol, length);
        (void)bp_buffer_append_text(out, frame->is_python ? "" : " ()");
    }
    if (frame->source != NULL) {
        (void)bp_buffer_append_text(out, " at ");
        bp_frame_append_plain(out, frame->source, SIZE_MAX);
        if (frame->line > 0 || !frame->is_python) {
            (void)bp_buffer_printf(out, ":%" PRIu64, frame->line);
        }
    } else if (frame->module != NULL) {
        (void)bp_buffer_append_text(out, " from ");
        bp_frame_append_plain(out, frame->module, SIZE_MAX);
        (void)bp_buffer_printf(out, " (+0x%" PRIx64 ")", frame->file_address);
    }
    (void)bp_buffer_append_text(out, frame->is_inlined ? " [inlined]" : "");
    (void)bp_buffer_append_text(out, frame->is_by_frame_pointer ? " [by frame pointer]\n" : "\n");
}

/* `is_last`: nothing follows that would need room. */
static void list_next(bp_frame_list *list, bool is_last) {
    static const char separator[] = " < ";
    char count[24] = "";
    if (list->next_count == 0 || list->is_full) {
        return;
    }
    if (list->next_count > 1) {
        (void)snprintf(count, sizeof count, " \u00d7%zu", list->next_count);
    }
    const char *between = list->used > 0 ? separator : "";
    size_t length = strlen(between) + strlen(list->next + list->next_start) + strlen(count);
    size_t reserve = is_last ? 0 : sizeof separator - 1 + sizeof ellipsis - 1;
    list->is_full = list->used + length + reserve >= list_bytes;
    if (list->is_full && !list->is_next_nameless) {
        memcpy(list->outermost, list->next, sizeof list->outermost);
    }
    int written = snprintf(list->text + list->used, sizeof list->text - list->used, "%s%s%s",
                           between, list->is_full ? ellipsis : list->next + list->next_start,
                           list->is_full ? "" : count);
    list->used += (size_t)written;
    list->next_count = 0;
}

void bp_frame_list_add(bp_frame_list *list, const bp_frame_text *frame) {
    char name[BP_FRAME_NAME_BYTES];
    bp_frame_short_name(frame, name);
    bool is_nameless = frame->symbol == NULL && frame->demangled == NULL && !frame->is_signal;
    list->has_nameless = list->has_nameless || is_nameless;
    if (list->next_count > 0 && strcmp(name, list->next) != 0) {
        list_next(list, false);
    }
    if (list->is_full && !is_nameless) {
        memcpy(list->outermost, name, sizeof name);
    }
    if (list->is_full || list->next_count++ > 0) {
        return;
    }
    memcpy(list->next, name, sizeof name);
    list->is_next_nameless = is_nameless;
    list->next_start = 0;
    size_t module_bytes =
        is_nameless && frame->module != NULL ? (size_t)(strrchr(name, '+') - name) : 0;
    if (list->names_module_once && module_bytes > 0 &&
        strncmp(list->module, name, module_bytes) == 0 && list->module[module_bytes] == '\0') {
        list->next_start = module_bytes;
    }
    (void)snprintf(list->module, sizeof list->module, "%.*s", (int)module_bytes, name);
}

void bp_frame_list_end(bp_frame_list *list, bool is_complete) {
    bool has_any = list->used > 0 || list->next_count > 0;
    list_next(list, is_complete);
    if (list->is_full && list->has_nameless && list->outermost[0] != '\0') {
        (void)snprintf(list->text + list->used, sizeof list->text - list->used, " < %s",
                       list->outermost);
    }
    if (!is_complete && has_any && !list->is_full) {
        (void)snprintf(list->text + list->used, sizeof list->text - list->used, " < %s", ellipsis);
    }
}
