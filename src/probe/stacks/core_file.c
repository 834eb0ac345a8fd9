#include "stacks/core_file.h"

#include <elf.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "base/status.h"
#include "platform/linux/crash_collect.h"
#include "platform/linux/files.h"
#include "platform/linux/proc_text.h"
#include "process/elf_object.h"
#include "stacks/page_files.h"
#include "stacks/stack_files.h"
#include "stacks/thread_stop.h"

/* Notes have some 2 KiB for each thread, and the names of files. */
static const uint64_t notes_max_bytes = (uint64_t)256 << 20;

/* Far above what vm.max_map_count is: a sparse file claims any number. */
static const size_t segment_max = (size_t)1 << 21;

/* The contents of a note; NULL: there is none. */
typedef struct note {
    const unsigned char *bytes;
    size_t byte_count;
} note;

/* A file that is mapped: `name` is none if it could end a line of maps. */
typedef struct file_entry {
    uint64_t start, end, page_offset;
    const char *name;
} file_entry;

typedef struct core {
    int fd;
    const char *path;
    uint64_t file_bytes;
    Elf64_Phdr *segments; /* ascending by address, as the kernel writes them */
    size_t segment_count;
    unsigned char *notes;
    size_t notes_bytes;
    size_t thread_count;
    note signal, program, auxiliary, files;
    file_entry executable;
    bp_crash_page *page;
} core;

static bugpack_status fail_core(const core *self, const char *why, bugpack_error *error) {
    return bp_fail(error, BUGPACK_ERR_INVALID, "cannot read the core \"%s\": %s", self->path, why);
}

static bool read_exactly(const core *self, void *out, uint64_t byte_count, uint64_t offset) {
    return offset <= self->file_bytes && byte_count <= self->file_bytes - offset &&
           bp_file_read_range(self->fd, out, (size_t)byte_count, offset) == (int64_t)byte_count;
}

/* A bp_crash_source: memory that the core has. */
static bool copy_memory(void *context, void *to, uint64_t from, size_t byte_count) {
    const core *self = context;
    for (size_t i = 0; i < self->segment_count; i++) {
        const Elf64_Phdr *segment = &self->segments[i];
        uint64_t offset = from - segment->p_vaddr;
        if (segment->p_type == PT_LOAD && from >= segment->p_vaddr && offset < segment->p_filesz &&
            byte_count <= segment->p_filesz - offset) {
            return segment->p_offset <= UINT64_MAX - offset &&
                   read_exactly(self, to, byte_count, segment->p_offset + offset);
        }
    }
    return false;
}

/* --- headers and notes -------------------------------------------------------------------- */

static bugpack_status read_headers(core *self, bugpack_error *error) {
    Elf64_Ehdr header;
    Elf64_Shdr first;
    if (!read_exactly(self, &header, sizeof header, 0) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_type != ET_CORE) {
        return fail_core(self, "it is no core of a process", error);
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != BP_ELF_OWN_MACHINE) {
        return bp_fail(error, BUGPACK_ERR_UNSUPPORTED,
                       "the core \"%s\" is of another processor than this one, or of 32 bits",
                       self->path);
    }
    self->segment_count = header.e_phnum;
    if (header.e_phnum == PN_XNUM) { /* elf(5): there are more */
        if (!read_exactly(self, &first, sizeof first, header.e_shoff)) {
            return fail_core(self, "it is cut short, in its headers", error);
        }
        self->segment_count = first.sh_info;
    }
    uint64_t bytes = self->segment_count * sizeof *self->segments;
    if (header.e_phentsize != sizeof *self->segments || bytes > self->file_bytes ||
        self->segment_count > segment_max) {
        return fail_core(self, "its headers make no sense, or it is cut short", error);
    }
    self->segments = malloc(bytes + 1);
    if (self->segments == NULL) {
        return bp_fail_memory(error, "read a core");
    }
    return read_exactly(self, self->segments, bytes, header.e_phoff)
               ? BUGPACK_OK
               : fail_core(self, "it is cut short, in its headers", error);
}

static bugpack_status read_notes(core *self, bugpack_error *error) {
    const Elf64_Phdr *found = NULL;
    for (size_t i = 0; found == NULL && i < self->segment_count; i++) {
        found = self->segments[i].p_type == PT_NOTE ? &self->segments[i] : NULL;
    }
    if (found == NULL || found->p_filesz > notes_max_bytes) {
        return fail_core(self, "it does not say what its threads did", error);
    }
    self->notes_bytes = (size_t)found->p_filesz;
    self->notes = malloc(self->notes_bytes + 1);
    if (self->notes == NULL) {
        return bp_fail_memory(error, "read a core");
    }
    return read_exactly(self, self->notes, self->notes_bytes, found->p_offset)
               ? BUGPACK_OK
               : fail_core(self, "it is cut short, before its memory", error);
}

/* Moves `at` on. False at the end, or where a note makes no sense. */
static bool take_note(const core *self, size_t *at, uint32_t *ret_type, note *ret_note) {
    Elf64_Nhdr header;
    if (self->notes_bytes - *at < sizeof header) {
        return false;
    }
    memcpy(&header, self->notes + *at, sizeof header);
    uint64_t begin = *at + sizeof header + (((uint64_t)header.n_namesz + 3) & ~(uint64_t)3);
    uint64_t next = begin + (((uint64_t)header.n_descsz + 3) & ~(uint64_t)3);
    if (begin > self->notes_bytes || header.n_descsz > self->notes_bytes - begin) {
        return false;
    }
    *ret_type = header.n_type;
    *ret_note = (note){self->notes + begin, header.n_descsz};
    *at = next < self->notes_bytes ? (size_t)next : self->notes_bytes;
    return true;
}

static void find_notes(core *self) {
    uint32_t type;
    note found;
    for (size_t at = 0; take_note(self, &at, &type, &found);) {
        bool is_first = self->thread_count <= 1; /* that of the signal comes first */
        if (type == NT_PRSTATUS && found.byte_count >= sizeof(struct elf_prstatus)) {
            self->thread_count++;
        } else if (type == NT_SIGINFO && is_first && found.byte_count >= sizeof(siginfo_t)) {
            self->signal = found;
        } else if (type == NT_PRPSINFO && found.byte_count >= sizeof(struct elf_prpsinfo)) {
            self->program = found;
        } else if (type == NT_AUXV) {
            self->auxiliary = found;
        } else if (type == NT_FILE) {
            self->files = found;
        }
    }
}

/* --- mappings ----------------------------------------------------------------------------- */

/* The files of a core, NT_FILE: numbers, then as many names (fill_files_note of fs/binfmt_elf.c).
 */
typedef struct file_list {
    const unsigned char *entries;
    const char *name, *end; /* of entry `next` */
    uint64_t count, next, page_bytes, inode;
} file_list;

static void open_files(const core *self, file_list *list) {
    enum { head_bytes = 16, entry_bytes = 24 };
    uint64_t head[2];
    *list = (file_list){.count = 0};
    if (self->files.byte_count < head_bytes) {
        return;
    }
    memcpy(head, self->files.bytes, head_bytes);
    if (head[0] <= (self->files.byte_count - head_bytes) / entry_bytes) {
        list->count = head[0];
        list->page_bytes = head[1];
        list->entries = self->files.bytes + head_bytes;
        list->name = (const char *)list->entries + list->count * entry_bytes;
        list->end = (const char *)self->files.bytes + self->files.byte_count;
    }
}

/* The next one; its inode is that of the one before if it has the same name. */
static bool take_file(file_list *list, file_entry *ret_entry) {
    enum { entry_bytes = 24 };
    const char *before = list->next > 0 ? ret_entry->name : NULL;
    const char *name = list->name;
    size_t room = (size_t)(list->end - name), length = list->count > 0 ? strnlen(name, room) : 0;
    if (list->next == list->count || length == room) {
        return false;
    }
    memcpy(ret_entry, list->entries + list->next * entry_bytes, entry_bytes);
    list->inode += before == NULL || strcmp(before, name) != 0;
    list->next++;
    list->name += length + 1;
    ret_entry->name = name;
    return true;
}

static bool is_plain(const char *name) {
    bool is_plain = name[0] == '/';
    for (; *name != '\0'; name++) {
        is_plain = is_plain && (unsigned char)*name >= ' ';
    }
    return is_plain;
}

/* Where the program headers of the program are, in its first mapping; 0: not known. */
static uint64_t program_address(const core *self) {
    Elf64_auxv_t entry;
    for (size_t at = 0; at + sizeof entry <= self->auxiliary.byte_count; at += sizeof entry) {
        memcpy(&entry, self->auxiliary.bytes + at, sizeof entry);
        if (entry.a_type == AT_PHDR) {
            return entry.a_un.a_val;
        }
    }
    return 0;
}

static void find_program(core *self) {
    file_list list;
    file_entry entry = {.name = NULL};
    uint64_t address = program_address(self);
    open_files(self, &list);
    while (take_file(&list, &entry)) {
        if (entry.start <= address && address < entry.end) {
            self->executable = entry;
        }
    }
}

/* One line as in /proc/<pid>/maps. False when there is no room for it. */
static bool add_map(bp_crash_page *page, const Elf64_Phdr *segment, uint64_t offset, uint64_t inode,
                    const char *path) {
    size_t room = sizeof page->maps - (size_t)page->maps_bytes;
    int length = snprintf(page->maps + page->maps_bytes, room,
                          "%" PRIx64 "-%" PRIx64 " %c%c%cp %08" PRIx64 " 00:00 %" PRIu64 " %s\n",
                          segment->p_vaddr, segment->p_vaddr + segment->p_memsz,
                          (segment->p_flags & PF_R) != 0 ? 'r' : '-',
                          (segment->p_flags & PF_W) != 0 ? 'w' : '-',
                          (segment->p_flags & PF_X) != 0 ? 'x' : '-', offset, inode, path);
    bool has_room = length > 0 && (size_t)length < room;
    page->maps_bytes += has_room ? (uint64_t)length : 0;
    return has_room;
}

/* The lines of maps: of both lists, in the order of addresses. */
typedef struct map_maker {
    bp_crash_page *page;
    file_list list;
    file_entry entry; /* the next one */
    bool has_entry;
    const char *program, *exe; /* where the program was, and where it is; NULL: not known */
} map_maker;

static void add_file_map(map_maker *maker, const Elf64_Phdr *segment) {
    const char *path = maker->entry.name;
    if (maker->exe != NULL && maker->program != NULL && strcmp(path, maker->program) == 0) {
        path = maker->exe;
    }
    bool has_room = !is_plain(path) ||
                    add_map(maker->page, segment, maker->entry.page_offset * maker->list.page_bytes,
                            maker->list.inode, path);
    maker->page->are_maps_cut = !has_room;
}

/* Files before an address of which the core has no memory: gdb leaves out what the files have,
 * which is code as well. */
static void add_files_before(map_maker *maker, uint64_t address) {
    while (maker->has_entry && maker->entry.start < address && maker->page->are_maps_cut == 0) {
        if (maker->entry.end > maker->entry.start) {
            const Elf64_Phdr segment = {.p_vaddr = maker->entry.start,
                                        .p_memsz = maker->entry.end - maker->entry.start,
                                        .p_flags = PF_R | PF_X};
            add_file_map(maker, &segment);
        }
        maker->has_entry = take_file(&maker->list, &maker->entry);
    }
}

static void add_maps(core *self, const char *exe) {
    map_maker maker = {.page = self->page, .program = self->executable.name, .exe = exe};
    open_files(self, &maker.list);
    maker.has_entry = take_file(&maker.list, &maker.entry);
    for (size_t i = 0; i < self->segment_count && self->page->are_maps_cut == 0; i++) {
        const Elf64_Phdr *segment = &self->segments[i];
        if (segment->p_type != PT_LOAD || segment->p_memsz > UINT64_MAX - segment->p_vaddr) {
            continue;
        }
        add_files_before(&maker, segment->p_vaddr);
        if (maker.has_entry && maker.entry.start == segment->p_vaddr) {
            add_file_map(&maker, segment);
            maker.has_entry = take_file(&maker.list, &maker.entry);
        } else {
            self->page->are_maps_cut = !add_map(self->page, segment, 0, 0, "");
        }
    }
    add_files_before(&maker, UINT64_MAX);
}

/* --- threads ------------------------------------------------------------------------------ */

/* From its stack pointer on, as far as the core has it, and `most` at most. */
static size_t copy_stack(core *self, uint64_t from, void *out, size_t most) {
    enum { piece_bytes = 256 };
    size_t bytes = 0;
    while (bytes + piece_bytes <= most &&
           copy_memory(self, (char *)out + bytes, from + bytes, piece_bytes)) {
        bytes += piece_bytes;
    }
    return bytes;
}

/* Its registers are in front of its stack. */
static void add_thread(core *self, const struct elf_prstatus *status, size_t left_count) {
    bp_crash_page *page = self->page;
    bp_thread_copy copy = {.register_count = 0};
    if (page->thread_count == BP_CRASH_THREAD_MAX || status->pr_pid <= 0 ||
        status->pr_pid == page->tid) {
        page->are_threads_cut = page->are_threads_cut != 0 || status->pr_pid != page->tid;
        return;
    }
    bp_crash_thread *thread = &page->threads[page->thread_count++];
    bp_thread_copy_set_registers(&copy, &status->pr_reg);
    *thread = (bp_crash_thread){.tid = status->pr_pid, .stack_pointer = copy.stack_pointer};
    size_t register_bytes = copy.register_count * sizeof copy.registers[0];
    size_t room = sizeof page->stacks - (size_t)page->stacks_bytes;
    size_t share = room / (left_count + 1) & ~(size_t)15;
    if (share <= register_bytes) {
        return;
    }
    unsigned char *to = page->stacks + page->stacks_bytes;
    memcpy(to, copy.registers, register_bytes);
    thread->program_counter = copy.program_counter;
    thread->register_count = (uint16_t)copy.register_count;
    thread->stack_at = (uint32_t)(page->stacks_bytes + register_bytes);
    thread->stack_bytes =
        (uint32_t)copy_stack(self, copy.stack_pointer, to + register_bytes, share - register_bytes);
    thread->state = BP_CRASH_THREAD_STOPPED;
    page->stacks_bytes += register_bytes + thread->stack_bytes;
}

/* gcore(1) and others write one of a process that goes on, with the signal that stopped it. */
static bool dumps_core(int number) {
    static const int numbers[] = {SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGBUS,
                                  SIGFPE,  SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS}; /* signal(7) */
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        if (numbers[i] == number) {
            return true;
        }
    }
    return false;
}

static void set_signal(core *self) {
    siginfo_t info = {.si_signo = 0}, found;
    if (self->signal.bytes != NULL) {
        memcpy(&found, self->signal.bytes, sizeof found);
        info = dumps_core(found.si_signo) ? found : info;
    }
    bp_crash_collect_signal(self->page, &info);
}

/* The first thread is the one that got the signal. Returns its stack pointer. */
static uint64_t add_threads(core *self, const char *name) {
    bp_crash_page *page = self->page;
    uint32_t type;
    note found;
    uint64_t stack_pointer = 0;
    size_t left_count = self->thread_count;
    for (size_t at = 0; left_count > 0 && take_note(self, &at, &type, &found);) {
        struct elf_prstatus status;
        if (type != NT_PRSTATUS || found.byte_count < sizeof status) {
            continue;
        }
        memcpy(&status, found.bytes, sizeof status);
        left_count--;
        if (page->tid != 0) {
            add_thread(self, &status, left_count);
            continue;
        }
        bp_thread_copy copy = {.register_count = 0};
        bp_thread_copy_set_registers(&copy, &status.pr_reg);
        page->tid = status.pr_pid;
        bp_thread_copy_to_page(&copy, page);
        stack_pointer = copy.stack_pointer;
    }
    if (page->tid == page->pid) {
        memcpy(page->thread_name, name, sizeof page->thread_name);
    }
    for (uint32_t i = 0; i < page->thread_count; i++) {
        if (page->threads[i].tid == page->pid) {
            memcpy(page->threads[i].name, name, sizeof page->threads[i].name);
        }
    }
    return stack_pointer;
}

/* --- the whole ---------------------------------------------------------------------------- */

/* Where a file that is given for the program is, which must be it if both have a build id. */
static bugpack_status check_program(const core *self, const char *exe, bugpack_error *error) {
    char build_id[BP_CRASH_BUILD_ID_BYTES] = "";
    int fd = bp_open_regular(exe);
    int result = fd < 0 ? errno : bp_read_build_id(fd, build_id);
    bp_file_close(fd);
    if (result != 0) {
        return bp_fail_errno(error, result, "cannot read \"%s\"", exe);
    }
    for (uint32_t i = 0; build_id[0] != '\0' && i < self->page->module_count; i++) {
        const bp_crash_module *module = &self->page->modules[i];
        if (module->start == self->executable.start && strcmp(module->build_id, build_id) != 0) {
            return bp_fail(error, BUGPACK_ERR_INVALID,
                           "\"%s\" is not the program of the core: its build id is %s, and the "
                           "core has %s",
                           exe, build_id, module->build_id);
        }
    }
    return BUGPACK_OK;
}

/* The kernel leaves out of a core what files have (core(5), coredump_filter), as names of types. */
static bool copy_of_files(void *context, void *to, uint64_t from, size_t byte_count) {
    const core *self = context;
    char path[PATH_MAX];
    const char *build_id;
    bp_proc_map map;
    if (copy_memory(context, to, from, byte_count)) {
        return true;
    }
    if (!bp_page_file_find(self->page, from, &map, &build_id) || map.path_bytes >= sizeof path ||
        byte_count > map.end - from) {
        return false;
    }
    (void)snprintf(path, sizeof path, "%.*s", (int)map.path_bytes, map.path);
    int fd = bp_stack_file_open_reported(path, build_id);
    bool is_read =
        fd >= 0 && bp_file_read_range(fd, to, byte_count, map.offset + from - map.start) ==
                       (int64_t)byte_count;
    bp_file_close(fd);
    return is_read;
}

/* A bp_memory_reader. */
static bool read_memory(void *context, uint64_t address, void *out, size_t bytes) {
    return copy_of_files(context, out, address, bytes);
}

static bugpack_status fill_page(core *self, const char *exe, bp_core_file *ret_core,
                                bugpack_error *error) {
    const bp_crash_source source = {.maps_fd = -1, .copy = copy_memory, .context = self};
    struct elf_prpsinfo program;
    bp_page_symbols symbols = {.abort_message = 0};
    bp_crash_page *page = self->page;
    find_notes(self);
    find_program(self);
    if (self->thread_count == 0) {
        return fail_core(self, "it does not say what its threads did", error);
    }
    if (self->program.bytes != NULL) {
        memcpy(&program, self->program.bytes, sizeof program);
        page->pid = program.pr_pid;
        memcpy(ret_core->name, program.pr_fname, sizeof ret_core->name - 1);
    }
    page->is_begun = page->is_of_core = 1;
    set_signal(self);
    uint64_t stack_pointer = add_threads(self, ret_core->name);
    page->pid = page->pid > 0 ? page->pid : page->tid;
    if (page->tid <= 0) {
        return fail_core(self, "its threads make no sense", error);
    }
    add_maps(self, exe);
    bp_crash_collect_memory(page, &source, stack_pointer);
    const bp_crash_source with_files = {.maps_fd = -1, .copy = copy_of_files, .context = self};
    bp_page_find_symbols(page, &symbols);
    bp_crash_collect_abort_message(page, &source, symbols.abort_message);
    bp_crash_collect_exception(page, &with_files);
    bp_page_python(page, &symbols, read_memory, self, &ret_core->python);
    for (size_t i = 0; i < self->segment_count; i++) {
        const Elf64_Phdr *segment = &self->segments[i];
        uint64_t left =
            segment->p_offset < self->file_bytes ? self->file_bytes - segment->p_offset : 0;
        uint64_t missing = segment->p_filesz > left ? segment->p_filesz - left : 0;
        if (segment->p_type == PT_LOAD && missing <= UINT64_MAX - ret_core->missing_bytes) {
            ret_core->missing_bytes += missing;
        }
    }
    return exe != NULL ? check_program(self, exe, error) : BUGPACK_OK;
}

bugpack_status bp_core_file_read(const char *path, const char *exe, bp_core_file *ret_core,
                                 bugpack_error *error) {
    struct stat info;
    core self = {.fd = bp_open_regular(path), .path = path, .page = calloc(1, sizeof *self.page)};
    bugpack_status status;
    char *program = exe != NULL ? realpath(exe, NULL) : NULL; /* maps have whole paths */
    *ret_core = (bp_core_file){.page = self.page};
    if (exe != NULL && program == NULL) {
        status = bp_fail_errno(error, errno, "cannot open \"%s\"", exe);
        goto out;
    }
    if (program != NULL && !is_plain(program)) {
        status =
            bp_fail(error, BUGPACK_ERR_INVALID, "the path of \"%s\" has control characters", exe);
        goto out;
    }
    if (self.fd < 0 && errno == ESTALE) {
        status = fail_core(&self, "it is not a regular file", error);
        goto out;
    }
    if (self.fd < 0 || fstat(self.fd, &info) != 0) {
        status = bp_fail_errno(error, errno, "cannot open \"%s\"", path);
        goto out;
    }
    if (self.page == NULL) {
        status = bp_fail_memory(error, "read a core");
        goto out;
    }
    self.file_bytes = (uint64_t)info.st_size;
    self.page->at.wall_ns =
        (uint64_t)info.st_mtim.tv_sec * BP_NS_PER_SEC + (uint64_t)info.st_mtim.tv_nsec;
    status = read_headers(&self, error);
    if (status == BUGPACK_OK) {
        status = read_notes(&self, error);
    }
    if (status == BUGPACK_OK) {
        status = fill_page(&self, program, ret_core, error);
    }
out:
    bp_file_close(self.fd);
    free(self.segments);
    free(self.notes);
    free(program);
    if (status != BUGPACK_OK) {
        bp_core_file_release(ret_core);
    }
    return status;
}

void bp_core_file_release(bp_core_file *file) {
    free(file->page);
    bp_stacks_release(&file->python);
    *file = (bp_core_file){.page = NULL};
}
