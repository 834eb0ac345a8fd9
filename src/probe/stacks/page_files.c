#include "stacks/page_files.h"

#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/array.h"
#include "base/file.h"
#include "process/elf_object.h"
#include "stacks/stack_files.h"

bool bp_page_file_find(const bp_crash_page *page, uint64_t address, bp_proc_map *ret_map,
                       const char **ret_build_id) {
    bp_proc_scan scan = {page->maps, page->maps + page->maps_bytes};
    uint64_t inode = 0;
    *ret_build_id = NULL;
    while (bp_proc_take_map(&scan, ret_map)) {
        for (uint32_t i = 0; ret_map->inode != inode && i < page->module_count; i++) {
            if (page->modules[i].start == ret_map->start) {
                *ret_build_id = page->modules[i].build_id;
                inode = ret_map->inode;
            }
        }
        if (address >= ret_map->start && address < ret_map->end) {
            return ret_map->inode == inode && *ret_build_id != NULL && !ret_map->is_writable;
        }
    }
    return false;
}

/* Opens the next file of these names that is mapped for execution, if it is still there, and says
 * where it was loaded. -1 at the end. */
static int open_next(const bp_crash_page *page, bp_proc_scan *scan, const char *const *names,
                     bp_elf_object *object, uint64_t *ret_base) {
    bp_proc_map map, found;
    while (bp_proc_take_map(scan, &map)) {
        char path[PATH_MAX];
        const char *build_id;
        uint64_t code;
        (void)snprintf(path, sizeof path, "%.*s", (int)map.path_bytes, map.path);
        if (!map.is_executable || !bp_array_has_start(names, bp_file_base_name(path)) ||
            !bp_page_file_find(page, map.start, &found, &build_id)) {
            continue;
        }
        int fd = bp_stack_file_open_reported(path, build_id);
        if (fd >= 0 && bp_elf_object_read(fd, object) == BP_ELF_OK &&
            bp_elf_code_address(object, &code)) {
            *ret_base = map.start - code;
            return fd;
        }
        bp_file_close(fd);
    }
    return -1;
}

void bp_page_find_symbols(const bp_crash_page *page, bp_page_symbols *ret_symbols) {
    static const char *const libc[] = {"libc.so.", "libc-2.", NULL};
    static const char *const python[] = {"libpython3", "python3", NULL};
    bp_proc_scan scan = {page->maps, page->maps + page->maps_bytes};
    bp_elf_object object;
    uint64_t base;
    Elf64_Sym symbol;
    int fd = page->signal == SIGABRT ? open_next(page, &scan, libc, &object, &base) : -1;
    if (fd >= 0 && bp_elf_find_symbol(&object, "__abort_msg", &symbol)) {
        ret_symbols->abort_message = base + symbol.st_value;
    }
    bp_file_close(fd);
    scan.next = page->maps;
    bool is_found = false;
    while (!is_found && (fd = open_next(page, &scan, python, &object, &base)) >= 0) {
        is_found = bp_python_layout_find(&object, base, &ret_symbols->python);
        bp_file_close(fd);
    }
}

void bp_page_python(const bp_crash_page *page, const bp_page_symbols *symbols,
                    bp_memory_reader *read, void *context, bp_stacks *ret_python) {
    bp_python_layout layout = symbols->python;
    layout.read = read;
    layout.context = context;
    if (layout.runtime == 0 || bp_python_layout_read(&layout) != BP_PYTHON_KNOWN) {
        return;
    }
    bp_python_thread *threads = calloc(BP_CRASH_THREAD_MAX, sizeof *threads);
    bp_python_stack *stack = calloc(1, sizeof *stack);
    size_t count = threads != NULL && stack != NULL
                       ? bp_python_list_threads(&layout, threads, BP_CRASH_THREAD_MAX)
                       : 0;
    for (size_t i = 0; i < count; i++) {
        size_t capacity = 0;
        if (threads[i].tid != (uint64_t)page->tid ||
            !bp_python_read_stack(&layout, threads[i].state, stack)) {
            continue;
        }
        bp_python_move_frames(stack, ret_python, &capacity);
        (void)snprintf(ret_python->python_reason, sizeof ret_python->python_reason, "%s",
                       stack->reason);
        break;
    }
    free(threads);
    free(stack);
}
