/*
 * What is said of frames once they are known: symbols, files, lines of source and the functions
 * that the compiler inlined there, as gdb and `eu-stack -i` show them, and the interpreter; also of
 * frames of a report, by whoever has the files.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/file.h"
#include "stacks/place_cache.h"
#include "stacks/stack_files.h"
#include "stacks/stacks.h"

static const char lower_hex[] = "0123456789abcdef";

/* __cxa_demangle of the Itanium C++ ABI. */
typedef char *demangler(const char *name, char *out, size_t *out_bytes, int *ret_status);

/*
 * That of libstdc++, or NULL. With `is_host`, only where the host has loaded it already: a runtime
 * is not loaded into somebody else's process, whose C++ names need none that is not there. The
 * library stays loaded: its code may be in use elsewhere in the process.
 */
static demangler *get_demangler(bool is_host) {
    void *library = dlopen("libstdc++.so.6", RTLD_LAZY | RTLD_LOCAL | (is_host ? RTLD_NOLOAD : 0));
    demangler *demangle = NULL;
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

enum { nesting_max = 96 }; /* of namespaces, functions and blocks */

/* The way from a unit of debug data down to an address. */
typedef struct nest {
    const bp_libdw *dw;
    Dwarf_Addr address;
    Dwarf_Die inlined[BP_STACK_INLINED_MAX]; /* outermost first */
    size_t count;
    Dwarf_Die function; /* they are in it; its address is NULL where none was found */
    bool is_cut;        /* there are more around them */
} nest;

static char *copy(const char *text) {
    return text != NULL && text[0] != '\0' ? strndup(text, BP_STACK_NAME_MAX) : NULL;
}

/*
 * The unit that has the address; NULL: none. dwfl_module_addrdie looks only into .debug_aranges,
 * which clang does not write (before elfutils 0.191); then each unit is asked.
 */
static Dwarf_Die *find_unit(const bp_stack_file *file, uint64_t address, Dwarf_Addr *ret_bias) {
    const bp_libdw *dw = file->all->dw;
    Dwarf_Die *unit = dw->dwfl_module_addrdie(file->module, address, ret_bias);
    bp_stack_files_note_errno(file->all);
    if (unit != NULL || file->all->lacked_memory) {
        return unit;
    }
    do {
        unit = dw->dwfl_module_nextcu(file->module, unit, ret_bias);
    } while (unit != NULL && dw->dwarf_haspc(unit, address - *ret_bias) <= 0);
    return unit;
}

static void keep(nest *way, const Dwarf_Die *die) {
    if (way->count == BP_STACK_INLINED_MAX) {
        way->is_cut = true;
        way->count--;
        memmove(way->inlined, way->inlined + 1, way->count * sizeof *die);
    }
    way->inlined[way->count++] = *die;
}

/* True if the function at the address is below `parent`; its inlined ones are kept then. */
static bool descend(nest *way, Dwarf_Die *parent, unsigned depth) {
    const bp_libdw *dw = way->dw;
    Dwarf_Die die;
    if (depth == nesting_max || dw->dwarf_child(parent, &die) != 0) {
        return false;
    }
    do {
        bool is_inlined = false;
        switch (dw->dwarf_tag(&die)) {
        case DW_TAG_inlined_subroutine:
            is_inlined = true;
            __attribute__((fallthrough));
        case DW_TAG_subprogram:
        case DW_TAG_lexical_block:
        case DW_TAG_try_block:
        case DW_TAG_catch_block:
            if (dw->dwarf_haspc(&die, way->address) > 0) {
                if (is_inlined) {
                    keep(way, &die);
                } else if (dw->dwarf_tag(&die) == DW_TAG_subprogram) {
                    way->function = die;
                }
                (void)descend(way, &die, depth + 1);
                return true;
            }
            break;
        case DW_TAG_namespace:
        case DW_TAG_module:
        case DW_TAG_class_type:
        case DW_TAG_structure_type:
        case DW_TAG_union_type:
            if (descend(way, &die, depth + 1)) {
                return true;
            }
            break;
        default:
            break;
        }
    } while (dw->dwarf_siblingof(&die, &die) == 0);
    return false;
}

/* As the symbol would be if the function were not inlined, or as it is written. */
static const char *name_of(const bp_libdw *dw, Dwarf_Die *die) {
    static const unsigned codes[] = {DW_AT_linkage_name, DW_AT_MIPS_linkage_name};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        Dwarf_Attribute attribute;
        const char *name = dw->dwarf_attr_integrate(die, codes[i], &attribute) != NULL
                               ? dw->dwarf_formstring(&attribute)
                               : NULL;
        if (name != NULL) {
            return name;
        }
    }
    return dw->dwarf_diename(die);
}

/* libstdc++ does not demangle Rust's newer names; the last part of such a name is in the debug
 * data. */
static char *plain_name(const bp_libdw *dw, Dwarf_Die *die, const char *symbol) {
    return symbol != NULL && strncmp(symbol, "_R", 2) == 0 ? copy(dw->dwarf_diename(die)) : NULL;
}

static bool read_number(const bp_libdw *dw, Dwarf_Die *die, unsigned code, Dwarf_Word *ret_number) {
    Dwarf_Attribute attribute;
    return dw->dwarf_attr(die, code, &attribute) != NULL &&
           dw->dwarf_formudata(&attribute, ret_number) == 0;
}

/* Where an inlined function was called. */
static void read_call(const bp_libdw *dw, Dwarf_Die *unit, Dwarf_Die *die, char **ret_source,
                      int *ret_line) {
    Dwarf_Files *files;
    Dwarf_Word number, line;
    size_t count;
    if (read_number(dw, die, DW_AT_call_file, &number) &&
        read_number(dw, die, DW_AT_call_line, &line) && line <= INT32_MAX &&
        dw->dwarf_getsrcfiles(unit, &files, &count) == 0 && number < count) {
        *ret_source = copy(dw->dwarf_filesrc(files, (size_t)number, NULL, NULL));
        *ret_line = (int)line;
    }
}

static void read_line(const bp_libdw *dw, Dwarf_Die *unit, Dwarf_Addr address, char **ret_source,
                      int *ret_line) {
    Dwarf_Line *line = dw->dwarf_getsrc_die(unit, address);
    if (line != NULL && dw->dwarf_lineno(line, ret_line) == 0) {
        *ret_source = copy(dw->dwarf_linesrc(line, NULL, NULL));
    }
}

/* Each function but the innermost one is where it calls the next. */
static bool add_inlined(bp_stack_place *place, nest *way, Dwarf_Die *unit) {
    place->inlined = calloc(way->count, sizeof *place->inlined);
    if (place->inlined == NULL) {
        return false;
    }
    place->inlined_count = way->count;
    for (size_t i = 0; i < way->count; i++) {
        Dwarf_Die *die = &way->inlined[way->count - 1 - i];
        bool is_outermost = i + 1 == way->count;
        char **source = is_outermost ? &place->source : &place->inlined[i + 1].source;
        int *line = is_outermost ? &place->line : &place->inlined[i + 1].line;
        place->inlined[i].symbol =
            copy(is_outermost && way->is_cut ? "\u2026" : name_of(way->dw, die));
        place->inlined[i].demangled = plain_name(way->dw, die, place->inlined[i].symbol);
        read_call(way->dw, unit, die, source, line);
    }
    return true;
}

static void read_lines(const bp_stack_file *file, bp_stack_place *place) {
    const bp_libdw *dw = file->all->dw;
    uint64_t address = place->address - (place->is_call ? 1 : 0);
    Dwarf_Addr bias = 0;
    nest way = {.dw = dw};
    if (!bp_stack_file_can_ask(file) || !file->has_debug || file->all->is_host) {
        return;
    }
    errno = 0;
    Dwarf_Die *unit = find_unit(file, address, &bias);
    way.address = address - bias;
    if (unit != NULL) {
        (void)descend(&way, unit, 0);
        if (way.function.addr != NULL && place->demangled == NULL) {
            place->demangled = plain_name(dw, &way.function, place->symbol);
        }
        bool has_inlined = way.count > 0 && add_inlined(place, &way, unit);
        read_line(dw, unit, way.address, has_inlined ? &place->inlined[0].source : &place->source,
                  has_inlined ? &place->inlined[0].line : &place->line);
    }
    bp_stack_files_note_errno(file->all);
}

/* By the name of a file that a process has mapped. */
static const char *find_interpreter(const bp_stack_files *files) {
    static const char *const rows[][2] = {
        {"libpython", "Python"}, {"python", "Python"},  {"libnode.so", "JavaScript"},
        {"node", "JavaScript"},  {"libjvm.so", "Java"}, {"libruby", "Ruby"},
        {"ruby", "Ruby"},        {"libperl", "Perl"},   {"perl", "Perl"}};
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        for (size_t i = 0; i < files->count; i++) {
            const char *name = bp_file_base_name(files->items[i].mapped.path);
            size_t length = strlen(rows[row][0]);
            if (strncmp(name, rows[row][0], length) == 0 &&
                (strchr(".-0123456789", name[length]) != NULL)) {
                return rows[row][1];
            }
        }
    }
    return NULL;
}

/* The describer of places in the files of one Dwfl. */
typedef struct describing {
    bp_stack_files *files;
    bool has_searched; /* for a demangler, which the first mangled name needs: C has none */
    demangler *demangle;
    bool is_mangled; /* there was none */
} describing;

/* The plain name, to be freed; NULL where there is none. */
static char *demangle_symbol(describing *with, const char *symbol) {
    int status = -1;
    if (symbol == NULL || !bp_demangle_is_bounded(symbol)) {
        return NULL;
    }
    if (!with->has_searched) {
        errno = 0;
        with->demangle = get_demangler(with->files->is_host);
        with->has_searched = true;
        bp_stack_files_note_errno(with->files);
    }
    if (with->demangle == NULL) {
        with->is_mangled = true;
        return NULL;
    }
    errno = 0;
    char *plain = with->demangle(symbol, NULL, NULL, &status);
    if (plain != NULL) {
        bp_demangle_rust(plain);
    }
    bp_stack_files_note_errno(with->files);
    return plain;
}

static void add_lines(describing *with, const bp_stack_file *file, bp_stack_place *place) {
    read_lines(file, place);
    for (size_t i = 0; i < place->inlined_count; i++) {
        bp_stack_inlined *inlined = &place->inlined[i];
        if (inlined->demangled == NULL) {
            inlined->demangled = demangle_symbol(with, inlined->symbol);
        }
    }
}

static void add_symbol(describing *with, const bp_stack_file *file, bp_stack_place *place) {
    bp_stack_file_add_symbol(file, place);
    place->demangled = demangle_symbol(with, place->symbol);
}

bool bp_stacks_is_over(const bp_stack_files *files, uint64_t deadline_ns) {
    return bp_clock_monotonic_ns() > deadline_ns ||
           (files->stop != NULL && atomic_load_explicit(files->stop, memory_order_relaxed));
}

/* The name of a type is demangled with that of its symbol in front. */
static char *demangle_type(describing *with, const char *type) {
    static const char prefix[] = "typeinfo name for ";
    char symbol[5 + BP_CRASH_TYPE_BYTES];
    (void)snprintf(symbol, sizeof symbol, "_ZTS%s", type);
    char *plain = demangle_symbol(with, symbol);
    if (plain != NULL && strncmp(plain, prefix, sizeof prefix - 1) == 0) {
        memmove(plain, plain + sizeof prefix - 1, strlen(plain) - sizeof prefix + 2);
    }
    return plain;
}

/*
 * Symbols last, and lines after all symbols: without the time for them, addresses, files and build
 * ids are there. Before both come the names that another process of the report had. False without
 * memory.
 */
static bool describe_places(bp_stack_files *files, uint64_t until_ns, bp_stacks *out) {
    static void (*const steps[])(describing *, const bp_stack_file *,
                                 bp_stack_place *) = {add_symbol, add_lines};
    describing with = {.files = files};
    bool *is_known = calloc(out->place_count + 1, sizeof *is_known);
    if (is_known == NULL) {
        return false;
    }
    for (size_t i = 0; i < out->place_count; i++) {
        uint32_t file = out->places[i].module;
        is_known[i] =
            file == BP_STACK_NO_MODULE || bp_place_cache_find(&files->items[file], &out->places[i]);
    }
    for (size_t step = 0; step < sizeof steps / sizeof steps[0]; step++) {
        out->undescribed_count = 0;
        for (size_t i = 0; i < out->place_count; i++) {
            if (is_known[i]) {
                continue;
            }
            if (bp_stacks_is_over(files, until_ns)) {
                out->undescribed_count++;
            } else {
                steps[step](&with, &files->items[out->places[i].module], &out->places[i]);
            }
        }
    }
    if (files->dead != NULL && files->dead->exception_type[0] != '\0') {
        out->exception_type = demangle_type(&with, files->dead->exception_type);
    }
    out->is_mangled = with.is_mangled;
    bool is_whole = out->undescribed_count == 0 && !with.is_mangled && !files->lacked_memory;
    for (size_t i = 0; is_whole && i < out->place_count; i++) {
        /* A host that had no descriptor for a file may have one for its next report. */
        if (!is_known[i] && (!files->is_host || out->places[i].symbol != NULL)) {
            bp_place_cache_keep(&files->items[out->places[i].module], &out->places[i]);
        }
    }
    free(is_known);
    return true;
}

/* Keeps the files that frames are in, and numbers the places by them. */
static bool take_modules(const bp_stack_files *files, bp_stacks *out) {
    size_t count = files->count;
    uint32_t *numbers = calloc(count + 1, sizeof *numbers);
    out->modules = calloc(count + 1, sizeof *out->modules);
    bool is_done = numbers != NULL && out->modules != NULL;
    for (size_t i = 0; is_done && i < out->place_count; i++) {
        uint32_t file = out->places[i].module;
        if (file != BP_STACK_NO_MODULE) {
            if (numbers[file] == 0) {
                bp_stack_module *module = &out->modules[out->module_count];
                *module = files->items[file].facts;
                module->path = strdup(files->items[file].mapped.path);
                is_done = module->path != NULL;
                numbers[file] = (uint32_t)++out->module_count;
            }
            out->places[i].module = numbers[file] - 1;
        }
    }
    free(numbers);
    return is_done;
}

bool bp_stacks_describe(bp_stack_files *files, uint64_t until_ns, bp_stacks *out) {
    if (files->is_host) {
        bp_place_cache_begin(true);
    }
    bool has_memory = describe_places(files, until_ns, out);
    out->language = find_interpreter(files);
    out->lacked_memory = files->lacked_memory;
    return has_memory && take_modules(files, out);
}

void bp_stacks_prepare_children(void) {
    (void)bp_libdw_get(NULL);
    bp_place_cache_begin(false);
}

enum { reported_files_max = 256 };
/* Far above the length of a file's mappings. */
static const uint64_t reported_file_bytes = (uint64_t)1 << 36;
/* Names and lines are no reason to wait for a report. */
static const uint64_t lookup_max_ns = 5 * BP_NS_PER_SEC;

typedef struct frame_lookup {
    const bp_debug_places *places;
    bp_stack_files files;
    describing with;
    uint64_t until_ns; /* 0: nobody has asked */
} frame_lookup;

static void free_lookup(void *self) {
    frame_lookup *lookup = self;
    if (lookup->files.dw != NULL) {
        bp_stack_files_close(&lookup->files);
    }
    free(lookup);
}

/* Each file gets a place of its own, at which it would be loaded. */
static bp_stack_file *find_reported(bp_stack_files *files, const char *path, const char *build_id) {
    for (size_t i = 0; i < files->count; i++) {
        if (strcmp(files->items[i].mapped.path, path) == 0 &&
            strcmp(files->items[i].facts.build_id, build_id) == 0) {
            return &files->items[i];
        }
    }
    bp_stack_file *file = &files->items[files->count];
    size_t id_length = strlen(build_id);
    if (files->count == reported_files_max || id_length == 0 ||
        id_length >= sizeof file->facts.build_id ||
        strspn(build_id, "0123456789abcdef") != id_length ||
        (file->mapped.path = strdup(path)) == NULL) {
        return NULL;
    }
    file->all = files;
    memcpy(file->facts.build_id, build_id, id_length);
    file->facts.start = ++files->count * reported_file_bytes;
    file->mapped.end = file->facts.start + reported_file_bytes;
    files->dw->dwfl_report_begin_add(files->dwfl);
    bp_stack_file_report(file);
    (void)files->dw->dwfl_report_end(files->dwfl, NULL, NULL);
    bp_stack_file_load(file); /* it is opened when it is first asked for something */
    const bp_debug_places *places = files->places;
    if (places != NULL && places->note != NULL && file->is_chosen && file->elf == NULL) {
        places->note(places->context, path, build_id, file->facts.trouble);
    }
    return file;
}

static bool find_place(void *self, const char *path, const char *build_id, uint64_t offset,
                       bool is_call, bp_stack_place *ret_place) {
    frame_lookup *lookup = self;
    if (lookup->until_ns == 0) {
        const bp_libdw *dw = bp_libdw_get(NULL);
        lookup->until_ns = bp_clock_monotonic_ns() +
                           (lookup->places != NULL ? lookup->places->max_ns : lookup_max_ns);
        lookup->with.files = &lookup->files;
        if (dw != NULL) {
            lookup->files =
                (bp_stack_files){.dw = dw,
                                 .process_fd = -1,
                                 .is_of_report = true,
                                 .places = lookup->places,
                                 .items = calloc(reported_files_max, sizeof(bp_stack_file)),
                                 .dwfl = dw->dwfl_begin(&bp_stack_file_callbacks)};
        }
    }
    if (lookup->files.items == NULL || lookup->files.dwfl == NULL ||
        offset >= reported_file_bytes || bp_clock_monotonic_ns() > lookup->until_ns) {
        return false;
    }
    const bp_stack_file *file = find_reported(&lookup->files, path, build_id);
    if (file == NULL) {
        return false;
    }
    bp_stack_place place = {.address = file->facts.start + offset, .is_call = is_call};
    add_symbol(&lookup->with, file, &place);
    add_lines(&lookup->with, file, &place);
    *ret_place = place;
    return true;
}

bp_frame_finder bp_frame_finder_new(const bp_debug_places *places) {
    frame_lookup *lookup = calloc(1, sizeof *lookup);
    if (lookup != NULL) {
        lookup->places = places;
    }
    return lookup == NULL ? (bp_frame_finder){NULL, NULL, NULL}
                          : (bp_frame_finder){lookup, find_place, free_lookup};
}
