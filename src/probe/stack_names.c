/*
 * What is said of frames once they are known: symbols, files, the interpreter; also of those of a
 * report, by whoever has the files.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "probe/demangle.h"
#include "probe/stack_unwind.h"
#include "probe/stacks.h"

/* By the name of a file that a process has mapped. */
static void find_interpreter(bp_unwinder *unwinder) {
    static const char *const rows[][2] = {
        {"libpython", "Python"}, {"python", "Python"},  {"libnode.so", "JavaScript"},
        {"node", "JavaScript"},  {"libjvm.so", "Java"}, {"libruby", "Ruby"},
        {"ruby", "Ruby"},        {"libperl", "Perl"},   {"perl", "Perl"}};
    for (size_t row = 0; row < sizeof rows / sizeof rows[0]; row++) {
        for (size_t i = 0; i < unwinder->files->count; i++) {
            const char *path = unwinder->files->items[i].mapped.path;
            const char *slash = strrchr(path, '/');
            const char *name = slash != NULL ? slash + 1 : path;
            size_t length = strlen(rows[row][0]);
            if (strncmp(name, rows[row][0], length) == 0 &&
                (strchr(".-0123456789", name[length]) != NULL)) {
                unwinder->out.language = rows[row][1];
                return;
            }
        }
    }
}

/* What describes places of the files of one Dwfl. */
typedef struct describing {
    bp_stack_files *files;
    bp_demangler *demangler;
    bool is_mangled; /* there was none */
} describing;

static char *demangle_symbol(describing *with, const char *symbol) {
    if (symbol == NULL || !bp_demangle_is_bounded(symbol)) {
        return NULL;
    }
    with->is_mangled = with->is_mangled || with->demangler == NULL;
    errno = 0;
    char *plain = bp_demangle(with->demangler, symbol);
    bp_stack_files_note_errno(with->files);
    return plain;
}

static void add_lines(describing *with, const bp_stack_file *file, bp_stack_place *place) {
    bp_stack_file_add_lines(file, place);
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

static void find_demangler(describing *with) {
    errno = 0;
    with->demangler = bp_demangler_get(with->files->is_host);
    bp_stack_files_note_errno(with->files);
}

/* Symbols last, and lines after all symbols: without the time for them, addresses, files and build
 * ids are there. */
static void describe_places(bp_unwinder *unwinder) {
    static void (*const steps[])(describing *, const bp_stack_file *,
                                 bp_stack_place *) = {add_symbol, add_lines};
    describing with = {.files = unwinder->files};
    bp_stacks *out = &unwinder->out;
    find_demangler(&with);
    for (size_t step = 0; step < sizeof steps / sizeof steps[0]; step++) {
        out->undescribed_count = 0;
        for (size_t i = 0; i < out->place_count; i++) {
            if (out->places[i].module == BP_STACK_NO_MODULE) {
                continue;
            }
            if (bp_unwinder_is_over(unwinder, unwinder->plan->symbols_until_ns)) {
                out->undescribed_count++;
            } else {
                steps[step](&with, &with.files->items[out->places[i].module], &out->places[i]);
            }
        }
    }
    out->is_mangled = with.is_mangled;
}

/* Keeps the files that frames are in, and numbers the places by them. */
static bool take_modules(bp_unwinder *unwinder) {
    bp_stacks *out = &unwinder->out;
    size_t count = unwinder->files->count;
    uint32_t *numbers = calloc(count + 1, sizeof *numbers);
    out->modules = calloc(count + 1, sizeof *out->modules);
    bool is_done = numbers != NULL && out->modules != NULL;
    for (size_t i = 0; is_done && i < out->place_count; i++) {
        uint32_t file = out->places[i].module;
        if (file != BP_STACK_NO_MODULE) {
            if (numbers[file] == 0) {
                bp_stack_module *module = &out->modules[out->module_count];
                *module = unwinder->files->items[file].facts;
                module->path = strdup(unwinder->files->items[file].mapped.path);
                is_done = module->path != NULL;
                numbers[file] = (uint32_t)++out->module_count;
            }
            out->places[i].module = numbers[file] - 1;
        }
    }
    free(numbers);
    return is_done;
}

bool bp_unwinder_finish(bp_unwinder *unwinder) {
    describe_places(unwinder);
    find_interpreter(unwinder);
    unwinder->out.lacked_memory = unwinder->files->lacked_memory;
    return take_modules(unwinder);
}

enum { reported_files_max = 256 };
/* Far above the length of a file's mappings. */
static const uint64_t reported_file_bytes = (uint64_t)1 << 36;
/* Names and lines are no reason to wait for a report. */
static const uint64_t lookup_max_ns = 5 * BP_NS_PER_SEC;

typedef struct frame_lookup {
    bp_stack_files files;
    describing with;
    uint64_t until_ns; /* 0: nobody has asked */
} frame_lookup;

static void open_lookup(frame_lookup *lookup) {
    const bp_libdw *dw = bp_libdw_get(NULL);
    lookup->until_ns = bp_clock_monotonic_ns() + lookup_max_ns;
    lookup->with.files = &lookup->files;
    if (dw != NULL) {
        lookup->files = (bp_stack_files){.dw = dw,
                                         .process_fd = -1,
                                         .is_of_report = true,
                                         .items = calloc(reported_files_max, sizeof(bp_stack_file)),
                                         .dwfl = dw->dwfl_begin(&bp_stack_file_callbacks)};
        find_demangler(&lookup->with);
    }
}

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
    file->end = file->facts.start + reported_file_bytes;
    files->dw->dwfl_report_begin_add(files->dwfl);
    (void)bp_stack_file_report(file);
    (void)files->dw->dwfl_report_end(files->dwfl, NULL, NULL);
    bp_stack_file_load(file); /* it is opened when it is first asked for something */
    return file;
}

static bool find_place(void *self, const char *path, const char *build_id, uint64_t offset,
                       bool is_call, bp_stack_place *ret_place) {
    frame_lookup *lookup = self;
    if (lookup->until_ns == 0) {
        open_lookup(lookup);
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

bp_frame_finder bp_frame_finder_new(void) {
    frame_lookup *lookup = calloc(1, sizeof *lookup);
    return lookup == NULL ? (bp_frame_finder){NULL, NULL, NULL}
                          : (bp_frame_finder){lookup, find_place, free_lookup};
}
