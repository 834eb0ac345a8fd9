#include "stacks/stack_files.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/array.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/status.h"
#include "platform/linux/files.h"
#include "process/elf_object.h"
#include "process/remote_memory.h"
#include "stacks/stacks.h"

/* Access of libdwfl to the files of a process. */

/* Bounds of what libdw reads: symbols, and debug data where lines of source are wanted. */
static const uint64_t symbols_max_bytes = (uint64_t)256 << 20;
static const uint64_t debug_max_bytes = (uint64_t)96 << 20;
static const uint64_t unwind_max_bytes = (uint64_t)16 << 20;
static const uint64_t all_max_bytes = (uint64_t)1 << 30; /* of all files that were not chosen */
enum { vdso_max_bytes = 32768 };                         /* 4 to 8 KiB today */
static const off_t file_max_bytes = (off_t)4 << 30;

static void refuse(bp_stack_file *file, const char *reason) {
    (void)snprintf(file->facts.trouble, sizeof file->facts.trouble, "%s", reason);
}

static void refuse_errno(bp_stack_file *file, int system_errno, bool is_there) {
    char message[BP_ERRNO_BYTES];
    if (!is_there && !bp_errno_is_trouble(system_errno)) {
        refuse(file, "it was removed or replaced since it was loaded");
        return;
    }
    bp_describe_errno(system_errno, message);
    (void)snprintf(file->facts.trouble, sizeof file->facts.trouble, "it cannot be read: %s",
                   message);
}

/* Where the code is must agree with where the file begins, or every offset would be wrong. */
static bool is_loaded_as_usual(bp_stack_file *file, int fd) {
    bp_elf_object object;
    uint64_t code;
    uint64_t page_mask = (uint64_t)sysconf(_SC_PAGESIZE) - 1;
    if (bp_elf_object_read(fd, &object) != BP_ELF_OK || !bp_elf_code_address(&object, &code)) {
        return false;
    }
    for (size_t i = 0; i < object.segment_count; i++) {
        if (object.segments[i].p_type == PT_LOAD) {
            file->facts.file_start = object.segments[i].p_vaddr & ~page_mask;
            return file->mapped.code_start - file->facts.start == code - file->facts.file_start;
        }
    }
    return false;
}

static bool is_only_ours(const struct stat *info) {
    return (info->st_uid == 0 || info->st_uid == geteuid()) && (info->st_mode & 022) == 0;
}

/* The next section whose name begins so; NULL also where they cannot be read. */
static Elf_Scn *next_section(const bp_libdw *dw, Elf *elf, Elf_Scn *section, const char *prefix,
                             GElf_Shdr *ret_header) {
    size_t names;
    bool is_readable = dw->elf_getshdrstrndx(elf, &names) == 0;
    while (is_readable && (section = dw->elf_nextscn(elf, section)) != NULL) {
        const char *name = dw->gelf_getshdr(section, ret_header) != NULL
                               ? dw->elf_strptr(elf, names, ret_header->sh_name)
                               : NULL;
        if (name != NULL && strncmp(name, prefix, strlen(prefix)) == 0) {
            return section;
        }
    }
    return NULL;
}

/* The size of all of them. */
static uint64_t section_bytes(const bp_libdw *dw, Elf *elf, const char *prefix) {
    GElf_Shdr header;
    uint64_t bytes = 0;
    for (Elf_Scn *section = NULL;
         (section = next_section(dw, elf, section, prefix, &header)) != NULL;) {
        bytes += header.sh_size <= UINT64_MAX - bytes ? header.sh_size : 0;
    }
    return bytes;
}

/* Checks what bp_elf_memory_bytes cannot see. ".gnu_debugdata" is compressed, and libdw expands it
 * without a limit. Where no section is called ".eh_frame", libdw reads the whole file for it. */
static const char *trouble_of(const bp_stack_file *file, Elf *elf, off_t file_bytes) {
    const bp_libdw *dw = file->all->dw;
    if (elf == NULL) {
        return "it is no ELF file";
    }
    uint64_t unwind_bytes = section_bytes(dw, elf, ".eh_frame");
    if (unwind_bytes > unwind_max_bytes) {
        return "its unwind tables take over 16 MiB";
    }
    if (unwind_bytes == section_bytes(dw, elf, ".eh_frame_hdr") &&
        (uint64_t)file_bytes > symbols_max_bytes) {
        return "it is over 256 MiB, and does not say where its unwind tables end";
    }
    if (!file->is_trusted && section_bytes(dw, elf, ".gnu_debugdata") > 0) {
        return "another user could have packed anything into its table of symbols";
    }
    return NULL;
}

/*
 * Reads the build id, and tells whether the file is what a dead process ran. That is known from
 * memory; else the file must not have been changed since.
 */
static bool is_what_ran(bp_stack_file *file, int fd, const struct stat *info) {
    const bp_crash_page *dead = file->all->dead;
    char build_id[sizeof file->facts.build_id] = "";
    (void)bp_read_build_id(fd, build_id);
    if (file->facts.build_id[0] != '\0') {
        return strcmp(file->facts.build_id, build_id) == 0;
    }
    memcpy(file->facts.build_id, build_id, sizeof build_id);
    return dead == NULL || (uint64_t)info->st_ctime < dead->at.wall_ns / BP_NS_PER_SEC;
}

/* ELF_C_READ, not its mapped form: a file that shrinks meanwhile must not raise SIGBUS. */
static Elf *open_elf(bp_stack_file *file, int fd) {
    const bp_libdw *dw = file->all->dw;
    struct stat info;
    uint64_t max_bytes = file->is_chosen ? BP_DEBUG_FILE_MAX_BYTES : symbols_max_bytes;
    uint64_t bytes = bp_elf_memory_bytes(fd);
    if (fstat(fd, &info) != 0 || info.st_size > file_max_bytes || bytes > max_bytes) {
        refuse(file, file->is_chosen
                         ? "its debug file is damaged, or would take over 1 GiB of memory"
                         : "its symbols and debug data would take over 256 MiB of memory, "
                           "or its tables make no sense");
        return NULL;
    }
    if (!file->is_chosen && bytes > all_max_bytes - file->all->taken_bytes) {
        refuse(file, "its symbols and debug data, with those of other files, would take over 1 GiB "
                     "of memory");
        return NULL;
    }
    if (!file->all->is_of_report && !is_loaded_as_usual(file, fd)) {
        refuse(file, "it is not loaded as its headers say");
        return NULL;
    }
    if (!is_what_ran(file, fd, &info)) {
        refuse(file, "it was changed since the process ran it");
        return NULL;
    }
    file->is_trusted = file->is_chosen || is_only_ours(&info);
    file->has_debug = file->is_trusted && (file->is_chosen || bytes <= debug_max_bytes);
    file->all->taken_bytes += file->is_chosen ? 0 : bytes;
    Elf *elf = dw->elf_begin(fd, ELF_C_READ, NULL);
    const char *trouble = trouble_of(file, elf, info.st_size);
    if (trouble != NULL) {
        refuse(file, trouble);
        (void)dw->elf_end(elf);
        return NULL;
    }
    return elf;
}

/* -1 for one that is not of that build. */
static int open_of_build(const char *path, const char *build_id, bool *is_other) {
    char found[BP_CRASH_BUILD_ID_BYTES] = "";
    int fd = bp_open_regular(path);
    if (fd >= 0 && (bp_read_build_id(fd, found) != 0 || strcmp(found, build_id) != 0)) {
        *is_other = true;
        bp_file_close(fd);
        return -1;
    }
    return fd;
}

/* In the places that were chosen; -1: in none. */
static int open_chosen(bp_stack_file *file) {
    const bp_debug_places *places = file->all->places;
    const char *id = file->facts.build_id, *name = bp_file_base_name(file->mapped.path);
    bool is_other = false;
    char path[PATH_MAX];
    int fd = -1;
    if (places->dir != NULL) {
        (void)snprintf(path, sizeof path, "%s/.build-id/%.2s/%s.debug", places->dir, id, id + 2);
        fd = open_of_build(path, id, &is_other);
        for (int i = 0; fd < 0 && i < 2; i++) {
            (void)snprintf(path, sizeof path, "%s/%s%s", places->dir, name, i == 0 ? ".debug" : "");
            fd = open_of_build(path, id, &is_other);
        }
    }
    if (fd < 0 && places->fetch != NULL) {
        fd = places->fetch(places->context, id);
    }
    if (fd < 0 && is_other && places->note != NULL) {
        places->note(places->context, file->mapped.path, id,
                     "the debug file of that name is of another build");
    }
    return fd;
}

int bp_stack_file_open_reported(const char *path, const char *build_id) {
    static const char *const foreign[] = {"/net/", "/proc/", "/dev/", "/sys/", NULL};
    bool is_other;
    bool may_open =
        path[0] == '/' && strstr(path, "/../") == NULL && !bp_array_has_start(foreign, path);
    return may_open ? open_of_build(path, build_id, &is_other) : -1;
}

/* Or as the debug file of its build id. -1 with errno. */
static int open_reported(const bp_stack_file *file) {
    char path[BP_DEBUG_FILE_PATH_BYTES];
    int fd = bp_stack_file_open_reported(file->mapped.path, file->facts.build_id);
    bp_debug_file_path(file->facts.build_id, path);
    return fd >= 0 ? fd : bp_open_regular(path);
}

/* The vDSO is no file: a copy of it is. -1 with errno. */
static int copy_vdso(const bp_stack_file *file) {
    unsigned char image[vdso_max_bytes];
    uint64_t mapped_bytes = file->mapped.end - file->facts.start;
    size_t bytes = (size_t)mapped_bytes;
    int result = mapped_bytes > sizeof image
                     ? EFBIG
                     : bp_remote_read_one(file->all->pid, file->facts.start, image, bytes);
    int fd = result == 0 ? memfd_create("bugpack", MFD_CLOEXEC) : -1;
    if (fd >= 0 && (result = bp_file_write_all(fd, image, bytes)) != 0) {
        bp_file_close(fd);
        fd = -1;
    }
    errno = result != 0 ? result : errno;
    return fd;
}

static int find_elf(Dwfl_Module *module, void **context, const char *name, Dwarf_Addr base,
                    char **ret_name, Elf **ret_elf) {
    bp_stack_file *file = *context;
    bool is_there = false;
    int fd;
    (void)module, (void)name, (void)base, (void)ret_name;
    if (file == NULL || file->was_opened) {
        return -1;
    }
    file->was_opened = true;
    bp_stack_files_note_errno(file->all); /* before calls of ours change it */
    fd = file->all->places != NULL ? open_chosen(file) : -1;
    file->is_chosen = fd >= 0;
    if (fd >= 0) {
        is_there = true;
    } else if (file->all->is_of_report) {
        fd = open_reported(file);
    } else if (file->mapped.inode == 0) {
        fd = copy_vdso(file);
    } else {
        fd = bp_mapped_file_open(file->all->process_fd, &file->mapped, &is_there);
    }
    if (fd < 0) {
        refuse_errno(file, errno, is_there);
        return -1;
    }
    file->elf = open_elf(file, fd);
    bp_stack_files_note_errno(file->all);
    if (file->elf == NULL) {
        bp_file_close(fd);
        return -1;
    }
    *ret_elf = file->elf;
    return fd;
}

/*
 * libdwfl maps the descriptor that it gets, so the file must be one that nobody shortens: packages
 * install debug files as root. Its second call is about the file that dwz shares among several.
 */
static int find_debug(Dwfl_Module *module, void **context, const char *name, Dwarf_Addr base,
                      const char *file_name, const char *link, GElf_Word checksum,
                      char **ret_name) {
    bp_stack_file *file = *context;
    bp_debug_file found = {.fd = -1};
    struct stat info;
    int found_errno;
    (void)module, (void)name, (void)base, (void)file_name;
    (void)link, (void)checksum, (void)ret_name;
    if (file == NULL || file->was_debug_sought || file->elf == NULL || !file->is_trusted ||
        (file->all->is_host && !file->has_debug_frames)) {
        return -1;
    }
    file->was_debug_sought = true;
    bp_stack_files_note_errno(file->all);
    if (!bp_debug_file_open_separate(file->all->dw, file->elf, file->mapped.path, &found,
                                     &found_errno)) {
        file->all->lacked_memory = file->all->lacked_memory || found_errno == ENOMEM;
        return -1;
    }
    int fd = fstat(found.fd, &info) == 0 && info.st_uid == 0 && (info.st_mode & 022) == 0 &&
                     bp_elf_memory_bytes(found.fd) <= debug_max_bytes
                 ? dup(found.fd)
                 : -1;
    bp_debug_file_close(file->all->dw, &found);
    return fd;
}

static int no_section_address(Dwfl_Module *module, void **context, const char *name,
                              Dwarf_Addr base, const char *section, GElf_Word number,
                              const GElf_Shdr *header, Dwarf_Addr *ret_address) {
    (void)module, (void)context, (void)name, (void)base;
    (void)section, (void)number, (void)header, (void)ret_address;
    return -1;
}

const Dwfl_Callbacks bp_stack_file_callbacks = {
    .find_elf = find_elf, .find_debuginfo = find_debug, .section_address = no_section_address};

/* The build ids of a dead process are known, too. */
static int list_files(bp_stack_files *files) {
    const bp_crash_page *dead = files->dead;
    bp_mapped_files mapped = {0};
    int result = 0;
    if (dead == NULL) {
        result = bp_mapped_files_read(files->process_fd, true, &mapped);
    } else if (!bp_mapped_files_parse(dead->maps, (size_t)dead->maps_bytes, true, &mapped)) {
        result = ENOMEM;
    }
    files->items = calloc(mapped.count + 1, sizeof *files->items);
    for (size_t i = 0; files->items != NULL && i < mapped.count; i++) {
        bp_stack_file *file = &files->items[files->count++];
        *file = (bp_stack_file){
            .all = files, .mapped = mapped.items[i], .facts.start = mapped.items[i].address};
        mapped.items[i].path = NULL;
        for (uint32_t j = 0; dead != NULL && j < dead->module_count; j++) {
            if (dead->modules[j].start == file->facts.start) {
                (void)snprintf(file->facts.build_id, sizeof file->facts.build_id, "%.*s",
                               (int)sizeof file->facts.build_id - 1, dead->modules[j].build_id);
            }
        }
    }
    files->code = mapped.code;
    files->code_count = mapped.code_count;
    mapped.code = NULL;
    bp_mapped_files_release(&mapped);
    return result == 0 && files->items == NULL ? ENOMEM : result;
}

void bp_stack_file_report(bp_stack_file *file) {
    const bp_libdw *dw = file->all->dw;
    void **context;
    file->module = dw->dwfl_report_module(file->all->dwfl, file->mapped.path, file->facts.start,
                                          file->mapped.end);
    if (file->module != NULL &&
        dw->dwfl_module_info(file->module, &context, NULL, NULL, NULL, NULL, NULL, NULL) != NULL) {
        *context = file;
    }
}

int bp_stack_files_open(bp_stack_files *files) {
    int result = list_files(files);
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
        bp_stack_file_report(&files->items[i]);
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

static int compare_start(const void *address, const void *file) {
    return *(const uint64_t *)address >= ((const bp_stack_file *)file)->facts.start ? 1 : -1;
}

bp_stack_file *bp_stack_files_find(const bp_stack_files *files, uint64_t address) {
    size_t above = bp_array_find_first(&address, files->items, files->count, sizeof *files->items,
                                       compare_start);
    bp_stack_file *file = above > 0 ? &files->items[above - 1] : NULL;
    return file != NULL && address < file->mapped.end ? file : NULL;
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
    if (!file->was_loaded && file->module != NULL) {
        file->was_loaded = true;
        file->has_table = file->all->dw->dwfl_module_eh_cfi(file->module, &bias) != NULL;
        bp_stack_files_note_errno(file->all);
    }
}

/* To read debug data takes most of the time of a short stack: packages have them compressed. */
void bp_stack_file_load_rules(bp_stack_file *file, uint64_t address) {
    Dwarf_Addr bias;
    bp_stack_file_load(file);
    bool may_read = !file->has_debug_frames && file->has_debug && file->module != NULL &&
                    !(file->has_table && file->all->is_host) && !file->all->lacked_memory;
    if (may_read && (bp_stack_file_rule(file, address) == BP_STACK_RULE_NONE ||
                     bp_stack_file_rule(file, address - 1) == BP_STACK_RULE_NONE)) {
        file->has_debug_frames = true;
        (void)file->all->dw->dwfl_module_dwarf_cfi(file->module, &bias);
        bp_stack_files_note_errno(file->all);
    }
}

bp_stack_rule bp_stack_file_rule(const bp_stack_file *file, uint64_t address) {
    const bp_libdw *dw = file->all->dw;
    bp_stack_rule rule = BP_STACK_RULE_NONE;
    size_t table_count = file->has_debug_frames ? 2 : 1;
    if (file->module == NULL || file->all->lacked_memory) {
        return BP_STACK_RULE_NONE;
    }
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

/* .eh_frame_hdr, in the one form that linkers write (LSB 5.0, 10.6.2): a sorted table of pairs of
 * 32 bits, relative to the section. */
static void find_functions(bp_stack_file *file) {
    static const unsigned char form[] = {1, 0x1b, 0x03, 0x3b};
    enum { head_bytes = 12, count_at = 8, pair_bytes = 8 };
    const bp_libdw *dw = file->all->dw;
    GElf_Shdr header;
    uint32_t count;
    Elf_Scn *section = next_section(dw, file->elf, NULL, ".eh_frame_hdr", &header);
    Elf_Data *data = section != NULL ? dw->elf_getdata(section, NULL) : NULL;
    if (data == NULL || data->d_buf == NULL || data->d_size < head_bytes ||
        memcmp(data->d_buf, form, sizeof form) != 0) {
        return;
    }
    size_t room = (data->d_size - head_bytes) / pair_bytes;
    memcpy(&count, (const unsigned char *)data->d_buf + count_at, sizeof count);
    file->functions = (const unsigned char *)data->d_buf + head_bytes;
    file->function_count = count < room ? count : room;
    file->functions_base = header.sh_addr;
}

static int compare_function(const void *offset, const void *pair) {
    int32_t start;
    memcpy(&start, pair, sizeof start);
    return *(const int64_t *)offset >= start ? 1 : -1;
}

uint64_t bp_stack_file_function(bp_stack_file *file, uint64_t address) {
    Dwarf_Addr bias = 0;
    int32_t start;
    if (!bp_stack_file_can_ask(file) ||
        file->all->dw->dwfl_module_eh_cfi(file->module, &bias) == NULL) {
        return address;
    }
    if (!file->were_functions_sought) {
        file->were_functions_sought = true;
        find_functions(file);
        bp_stack_files_note_errno(file->all);
    }
    const int64_t offset = (int64_t)(address - bias - file->functions_base);
    size_t after = bp_array_find_first(&offset, file->functions, file->function_count,
                                       2 * sizeof start, compare_function);
    if (after == 0) {
        return address;
    }
    memcpy(&start, file->functions + (after - 1) * 2 * sizeof start, sizeof start);
    return bias + file->functions_base + (uint64_t)(int64_t)start;
}
