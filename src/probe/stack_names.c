/*
 * What is said of frames once they are known: symbols, files, the interpreter.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probe/demangle.h"
#include "probe/stack_unwind.h"

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

static char *demangle_symbol(bp_unwinder *unwinder, bp_demangler *demangler, const char *symbol) {
    if (symbol == NULL || !bp_demangle_is_bounded(symbol)) {
        return NULL;
    }
    unwinder->out.is_mangled = unwinder->out.is_mangled || demangler == NULL;
    errno = 0;
    char *plain = bp_demangle(demangler, symbol);
    bp_stack_files_note_errno(unwinder->files);
    return plain;
}

static void add_lines(bp_unwinder *unwinder, bp_demangler *demangler, bp_stack_place *place) {
    bp_stack_file_add_lines(&unwinder->files->items[place->module], place);
    for (size_t i = 0; i < place->inlined_count; i++) {
        bp_stack_inlined *inlined = &place->inlined[i];
        if (inlined->demangled == NULL) {
            inlined->demangled = demangle_symbol(unwinder, demangler, inlined->symbol);
        }
    }
}

static void add_symbol(bp_unwinder *unwinder, bp_demangler *demangler, bp_stack_place *place) {
    bp_stack_file_add_symbol(&unwinder->files->items[place->module], place);
    place->demangled = demangle_symbol(unwinder, demangler, place->symbol);
}

/* Symbols last, and lines after all symbols: without the time for them, addresses, files and build
 * ids are there. */
static void describe_places(bp_unwinder *unwinder, bool is_host) {
    static void (*const steps[])(bp_unwinder *, bp_demangler *, bp_stack_place *) = {add_symbol,
                                                                                     add_lines};
    bp_stacks *out = &unwinder->out;
    errno = 0;
    bp_demangler *demangler = bp_demangler_get(is_host);
    bp_stack_files_note_errno(unwinder->files);
    for (size_t step = 0; step < sizeof steps / sizeof steps[0]; step++) {
        out->undescribed_count = 0;
        for (size_t i = 0; i < out->place_count; i++) {
            if (out->places[i].module == BP_STACK_NO_MODULE) {
                continue;
            }
            if (bp_unwinder_is_over(unwinder, unwinder->plan->symbols_until_ns)) {
                out->undescribed_count++;
            } else {
                steps[step](unwinder, demangler, &out->places[i]);
            }
        }
    }
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

bool bp_unwinder_finish(bp_unwinder *unwinder, bool is_host) {
    describe_places(unwinder, is_host);
    find_interpreter(unwinder);
    unwinder->out.lacked_memory = unwinder->files->lacked_memory;
    return take_modules(unwinder);
}
