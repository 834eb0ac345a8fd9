/*
 * What is said of frames once they are known: symbols, files, the interpreter.
 */
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

/* Symbols last: without the time for them, addresses, files and build ids are there. */
static void describe_places(bp_unwinder *unwinder, bool is_host) {
    bp_demangler *demangle = bp_demangler_get(is_host);
    for (size_t i = 0; i < unwinder->out.place_count; i++) {
        bp_stack_place *place = &unwinder->out.places[i];
        if (place->module == BP_STACK_NO_MODULE ||
            bp_unwinder_is_over(unwinder, unwinder->plan->symbols_until_ns)) {
            continue;
        }
        bp_stack_file_describe(&unwinder->files->items[place->module], place);
        if (place->symbol != NULL && bp_demangle_is_bounded(place->symbol)) {
            place->demangled = bp_demangle(demangle, place->symbol);
            unwinder->out.is_mangled = unwinder->out.is_mangled || demangle == NULL;
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
    return take_modules(unwinder);
}
