/*
 * Lines of source, and the functions that the compiler inlined there, as gdb and `eu-stack -i` show
 * them.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "probe/stack_modules.h"

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

/* Whether the function that has the address is below `parent`; its inlined ones are kept then. */
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

void bp_stack_file_add_lines(const bp_stack_file *file, bp_stack_place *place) {
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
