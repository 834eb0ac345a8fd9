#include "probe/stack_modules.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/array.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/linux/proc_scan.h"
#include "platform/linux/proc_text.h"

static const size_t maps_max_bytes = (size_t)16 << 20;
static const size_t file_max = 4096;

static const char vdso_name[] = "[vdso]";

/* Adjacent lines of one file are one file, also with small gaps, as large pages leave them. Where
 * it is far away it was mapped once more. */
static bool is_more_of(const bp_stack_file *last, const bp_proc_map *map) {
    static const uint64_t gap_max_bytes = (uint64_t)4 << 20;
    return last != NULL && last->mapped.inode == map->inode &&
           last->mapped.device_major == map->device_major &&
           last->mapped.device_minor == map->device_minor &&
           map->start - last->end <= gap_max_bytes;
}

static bool add_map(bp_stack_files *files, size_t *capacity, const bp_proc_map *map) {
    bp_stack_file *last = files->count > 0 ? &files->items[files->count - 1] : NULL;
    if (!is_more_of(last, map)) {
        if (last != NULL && last->mapped.code_start == 0) {
            free(last->mapped.path);
            files->count--; /* it has no code */
        }
        if (!bp_array_reserve(&files->items, files->count, capacity)) {
            return false;
        }
        last = &files->items[files->count];
        *last = (bp_stack_file){.all = files,
                                .facts.start = map->start,
                                .mapped = {.path = malloc(map->path_bytes + 1),
                                           .address = map->start,
                                           .device_major = map->device_major,
                                           .device_minor = map->device_minor,
                                           .inode = map->inode}};
        if (last->mapped.path == NULL) {
            return false;
        }
        (void)bp_proc_unescape_path(map->path, map->path_bytes, last->mapped.path);
        files->count++;
    }
    last->end = map->end;
    if (map->is_executable && last->mapped.code_start == 0) {
        last->mapped.code_start = map->start;
        last->mapped.code_end = map->end;
    }
    return true;
}

static bool add_code(bp_stack_files *files, size_t *capacity, const bp_proc_map *map) {
    if (!bp_array_reserve(&files->code, files->code_count, capacity)) {
        return false;
    }
    files->code[files->code_count++] = (bp_stack_code){map->start, map->end};
    return true;
}

/* A file's path begins with '/', and only the kernel can name other memory like this. */
static bool has_code(const bp_proc_map *map) {
    return map->inode != 0 ? map->path_bytes > 0 && map->path[0] == '/'
                           : map->path_bytes == sizeof vdso_name - 1 &&
                                 memcmp(map->path, vdso_name, map->path_bytes) == 0;
}

static bool parse_maps(bp_stack_files *files, const char *text, size_t byte_count) {
    bp_proc_scan scan = {text, text + byte_count};
    bp_proc_scan line;
    size_t capacity = 0, code_capacity = 0;
    while (files->count < file_max && bp_proc_take_line(&scan, &line)) {
        bp_proc_map map;
        if (!bp_proc_parse_map(line.next, (size_t)(line.end - line.next), &map)) {
            continue;
        }
        if ((map.is_executable && !add_code(files, &code_capacity, &map)) ||
            (has_code(&map) && !add_map(files, &capacity, &map))) {
            return false;
        }
    }
    if (files->count > 0 && files->items[files->count - 1].mapped.code_start == 0) {
        free(files->items[--files->count].mapped.path);
    }
    return true;
}

static int read_maps(bp_stack_files *files) {
    bp_buffer text;
    bugpack_error error = BUGPACK_ERROR_INIT;
    if (files->dead != NULL) {
        return parse_maps(files, files->dead->maps, (size_t)files->dead->maps_bytes) ? 0 : ENOMEM;
    }
    bp_buffer_init(&text, maps_max_bytes);
    bugpack_status status = bp_file_read_at(files->process_fd, "maps", &text, &error);
    int result = 0;
    if (status != BUGPACK_OK && status != BUGPACK_ERR_LIMIT) {
        result = error.system_errno != 0 ? error.system_errno : ENOMEM;
    } else if (text.size > 0 && !parse_maps(files, text.data, text.size)) {
        result = ENOMEM;
    }
    bp_buffer_release(&text);
    return result;
}

bool bp_stack_file_report(bp_stack_file *file) {
    const bp_libdw *dw = file->all->dw;
    void **context;
    file->module =
        dw->dwfl_report_module(file->all->dwfl, file->mapped.path, file->facts.start, file->end);
    if (file->module == NULL ||
        dw->dwfl_module_info(file->module, &context, NULL, NULL, NULL, NULL, NULL, NULL) == NULL) {
        return false;
    }
    *context = file;
    return true;
}

static void set_build_id(bp_stack_file *file) {
    const bp_crash_page *dead = file->all->dead;
    for (uint32_t i = 0; dead != NULL && i < dead->module_count; i++) {
        if (dead->modules[i].start == file->facts.start) {
            (void)snprintf(file->facts.build_id, sizeof file->facts.build_id, "%.*s",
                           (int)sizeof file->facts.build_id - 1, dead->modules[i].build_id);
        }
    }
}

int bp_stack_files_open(bp_stack_files *files) {
    int result = read_maps(files);
    if (result != 0) {
        return result;
    }
    files->dwfl = files->dw->dwfl_begin(&bp_stack_file_callbacks);
    if (files->dwfl == NULL) {
        return ENOMEM;
    }
    files->dw->dwfl_report_begin(files->dwfl);
    for (size_t i = 0; i < files->count; i++) {
        /* A Dwfl takes no two modules of one name and place, and none that overlap. */
        set_build_id(&files->items[i]);
        (void)bp_stack_file_report(&files->items[i]);
    }
    return files->dw->dwfl_report_end(files->dwfl, NULL, NULL) == 0 ? 0 : ENOMEM;
}

void bp_stack_files_close(bp_stack_files *files) {
    if (files->dwfl != NULL) {
        files->dw->dwfl_end(files->dwfl);
    }
    for (size_t i = 0; i < files->count; i++) {
        free(files->items[i].mapped.path);
    }
    free(files->items);
    free(files->code);
    *files = (bp_stack_files){.dw = files->dw, .process_fd = -1};
}

bp_stack_file *bp_stack_files_find(const bp_stack_files *files, uint64_t address) {
    size_t low = 0;
    size_t high = files->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (files->items[middle].facts.start <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    bp_stack_file *file = low > 0 ? &files->items[low - 1] : NULL;
    return file != NULL && address < file->end ? file : NULL;
}

bool bp_stack_files_have_code(const bp_stack_files *files, uint64_t address) {
    for (size_t i = 0; i < files->code_count; i++) {
        if (address >= files->code[i].start && address < files->code[i].end) {
            return true;
        }
    }
    return false;
}

/* A return address without a rule, which a table has to say: libdw then gives the empty
 * expression that it was passed. */
static bool has_caller(const bp_libdw *dw, Dwarf_Frame *frame, int number) {
    Dwarf_Op memory[3];
    Dwarf_Op *rule;
    size_t rule_count;
    return number < 0 || dw->dwarf_frame_register(frame, number, memory, &rule, &rule_count) != 0 ||
           rule_count != 0 || rule != memory;
}

static bp_stack_rule rule_of(const bp_libdw *dw, Dwarf_Frame *frame) {
    bool is_signal = false;
    int number = dw->dwarf_frame_info(frame, NULL, NULL, &is_signal);
    if (!has_caller(dw, frame, number)) {
        return BP_STACK_RULE_OUTERMOST;
    }
    return is_signal ? BP_STACK_RULE_SIGNAL : BP_STACK_RULE_FOUND;
}

void bp_stack_file_load(bp_stack_file *file) {
    Dwarf_Addr bias;
    if (file->was_loaded || file->module == NULL) {
        return;
    }
    file->was_loaded = true;
    bool has_table = file->all->dw->dwfl_module_eh_cfi(file->module, &bias) != NULL;
    bp_stack_files_note_errno(file->all);
    file->has_debug_frames = file->has_debug && !(has_table && file->all->is_host);
    if (file->has_debug_frames && !file->all->lacked_memory) {
        (void)file->all->dw->dwfl_module_dwarf_cfi(file->module, &bias);
        bp_stack_files_note_errno(file->all);
    }
}

bp_stack_rule bp_stack_file_rule(const bp_stack_file *file, uint64_t address) {
    const bp_libdw *dw = file->all->dw;
    bp_stack_rule rule = BP_STACK_RULE_NONE;
    bool can_ask = file->module != NULL && !file->all->lacked_memory;
    size_t table_count = !can_ask ? 0 : file->has_debug_frames ? 2 : 1;
    for (size_t i = 0; i < table_count && rule == BP_STACK_RULE_NONE; i++) {
        Dwarf_Addr bias;
        Dwarf_Frame *frame = NULL;
        Dwarf_CFI *table = i == 0 ? dw->dwfl_module_eh_cfi(file->module, &bias)
                                  : dw->dwfl_module_dwarf_cfi(file->module, &bias);
        if (table != NULL && dw->dwarf_cfi_addrframe(table, address - bias, &frame) == 0) {
            rule = rule_of(dw, frame);
            free(frame);
        }
        bp_stack_files_note_errno(file->all);
    }
    return rule;
}

void bp_stack_file_add_symbol(const bp_stack_file *file, bp_stack_place *place) {
    uint64_t address = place->address - (place->is_call ? 1 : 0);
    GElf_Off offset;
    GElf_Sym symbol;
    if (!bp_stack_file_can_ask(file)) {
        return;
    }
    errno = 0;
    const char *name = file->all->dw->dwfl_module_addrinfo(file->module, address, &offset, &symbol,
                                                           NULL, NULL, NULL);
    if (name != NULL && name[0] != '\0') {
        place->symbol = strndup(name, BP_STACK_NAME_MAX);
        place->symbol_offset = offset + (place->is_call ? 1 : 0);
    }
    bp_stack_files_note_errno(file->all);
}
