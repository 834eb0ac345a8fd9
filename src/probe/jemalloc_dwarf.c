#include "probe/jemalloc_dwarf.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "probe/libdw.h"

/* A file under investigation; starts zeroed with descriptor -1. */
struct debug_file {
    int fd;
    Elf *elf;
    Dwarf *dwarf; /* NULL until debug data are looked for, and when there are none */
};

/* Debug data beyond this is no jemalloc's: a limit for files that were made to keep us busy. */
static const unsigned unit_max = 200000;
static const unsigned entry_max = 20000000;

static void close_file(const bp_libdw *dw, struct debug_file *file) {
    (void)dw->dwarf_end(file->dwarf);
    (void)dw->elf_end(file->elf);
    if (file->fd >= 0) {
        (void)close(file->fd);
    }
    *file = (struct debug_file){.fd = -1};
}

/* ELF_C_READ, not its mapped form: a file that shrinks meanwhile must not be a SIGBUS of ours. */
static bool open_file(const bp_libdw *dw, int fd, struct debug_file *file) {
    *file = (struct debug_file){.fd = fd};
    file->elf = dw->elf_begin(fd, ELF_C_READ, NULL);
    return file->elf != NULL;
}

/* "tsd_tls" behind any prefix; a compiler may have put ".llvm.4711" behind it. */
static bool is_block_name(const char *name) {
    static const char word[] = "tsd_tls";
    const char *found = name;
    while ((found = strstr(found, word)) != NULL) {
        const char *rest = found + sizeof word - 1;
        if ((found == name || found[-1] == '_') && (*rest == '\0' || *rest == '.')) {
            return true;
        }
        found = rest;
    }
    return false;
}

static bool find_in_table(const bp_libdw *dw, Elf *elf, Elf_Scn *section, const GElf_Shdr *header,
                          bp_jemalloc_layout *layout) {
    Elf_Data *data = dw->elf_getdata(section, NULL);
    if (data == NULL || header->sh_entsize == 0) {
        return false;
    }
    uint64_t count = header->sh_size / header->sh_entsize;
    for (uint64_t i = 0; i < count && i < INT_MAX; i++) {
        GElf_Sym symbol;
        if (dw->gelf_getsym(data, (int)i, &symbol) == NULL) {
            return false;
        }
        if (GELF_ST_TYPE(symbol.st_info) != STT_TLS || symbol.st_shndx == SHN_UNDEF) {
            continue;
        }
        const char *name = dw->elf_strptr(elf, header->sh_link, symbol.st_name);
        if (name != NULL && is_block_name(name)) {
            layout->block = symbol.st_value;
            layout->block_bytes = symbol.st_size;
            return true;
        }
    }
    return false;
}

static bool find_block(const bp_libdw *dw, Elf *elf, bp_jemalloc_layout *layout) {
    for (Elf_Scn *section = NULL; (section = dw->elf_nextscn(elf, section)) != NULL;) {
        GElf_Shdr header;
        if (dw->gelf_getshdr(section, &header) != NULL &&
            (header.sh_type == SHT_SYMTAB || header.sh_type == SHT_DYNSYM) &&
            find_in_table(dw, elf, section, &header, layout)) {
            return true;
        }
    }
    return false;
}

/*
 * The members of tsd_s have names that keep jemalloc's own code away from them, with the plain name
 * at the end (TSD_MANGLE in tsd.h): "cant_access_tsd_items_directly_…_thread_allocated". Another
 * member is called thread_allocated_next_event_fast, which does not end so.
 */
static bool is_member(const char *name, const char *plain) {
    size_t name_bytes = strlen(name);
    size_t plain_bytes = strlen(plain);
    return name_bytes >= plain_bytes && strcmp(name + name_bytes - plain_bytes, plain) == 0 &&
           (name_bytes == plain_bytes || name[name_bytes - plain_bytes - 1] == '_');
}

/* thread_deallocated ends in "_…allocated" too, but never in "_thread_allocated". */
static bool read_members(const bp_libdw *dw, Dwarf_Die *structure, bp_jemalloc_layout *layout) {
    Dwarf_Die member;
    bool has_allocated = false;
    bool has_deallocated = false;
    unsigned count = 0;
    int more = dw->dwarf_child(structure, &member);
    for (; more == 0 && count < 4096; more = dw->dwarf_siblingof(&member, &member), count++) {
        Dwarf_Attribute attribute;
        Dwarf_Word place;
        const char *name = dw->dwarf_diename(&member);
        if (dw->dwarf_tag(&member) != DW_TAG_member || name == NULL ||
            dw->dwarf_attr(&member, DW_AT_data_member_location, &attribute) == NULL ||
            dw->dwarf_formudata(&attribute, &place) != 0) {
            continue;
        }
        if (!has_allocated && is_member(name, "thread_allocated")) {
            layout->allocated_place = place;
            has_allocated = true;
        } else if (!has_deallocated && is_member(name, "thread_deallocated")) {
            layout->deallocated_place = place;
            has_deallocated = true;
        }
    }
    return has_allocated && has_deallocated;
}

/* The structure lies at the top of each compilation unit of jemalloc. */
static bool find_in_unit(const bp_libdw *dw, Dwarf_Die *unit, unsigned *entries_left,
                         bp_jemalloc_layout *layout) {
    Dwarf_Die entry;
    int more = dw->dwarf_child(unit, &entry);
    for (; more == 0 && *entries_left > 0; more = dw->dwarf_siblingof(&entry, &entry)) {
        (*entries_left)--;
        if (dw->dwarf_tag(&entry) != DW_TAG_structure_type ||
            dw->dwarf_hasattr(&entry, DW_AT_declaration)) {
            continue;
        }
        const char *name = dw->dwarf_diename(&entry);
        if (name != NULL && strcmp(name, "tsd_s") == 0 && read_members(dw, &entry, layout)) {
            return true;
        }
    }
    return false;
}

/* Begins with reading all debug data into memory, so only a file with the symbol gets this far. */
static bool find_structure(const bp_libdw *dw, struct debug_file *file,
                           bp_jemalloc_layout *layout) {
    unsigned entries_left = entry_max;
    Dwarf_Off offset = 0;
    Dwarf_Off next;
    size_t header_bytes;
    file->dwarf = dw->dwarf_begin_elf(file->elf, DWARF_C_READ, NULL);
    for (unsigned i = 0; file->dwarf != NULL && i < unit_max && entries_left > 0;
         i++, offset = next) {
        Dwarf_Die unit;
        if (dw->dwarf_nextcu(file->dwarf, offset, &next, &header_bytes, NULL, NULL, NULL) != 0 ||
            next <= offset) {
            return false;
        }
        if (dw->dwarf_offdie(file->dwarf, offset + header_bytes, &unit) != NULL &&
            find_in_unit(dw, &unit, &entries_left, layout)) {
            return true;
        }
    }
    return false;
}

/* Takes a separate file when it is of the same build; the caller closes it. */
static bool try_separate(const bp_libdw *dw, Elf *elf, const char *path,
                         struct debug_file *ret_file) {
    const void *wanted;
    const void *found;
    int fd = -1;
    ssize_t wanted_bytes = dw->dwelf_elf_gnu_build_id(elf, &wanted);
    if (wanted_bytes <= 0 || bp_file_open_regular(AT_FDCWD, path, &fd, NULL) != BUGPACK_OK) {
        return false;
    }
    if (open_file(dw, fd, ret_file) &&
        dw->dwelf_elf_gnu_build_id(ret_file->elf, &found) == wanted_bytes &&
        memcmp(wanted, found, (size_t)wanted_bytes) == 0) {
        return true;
    }
    close_file(dw, ret_file);
    return false;
}

static bool open_by_build_id(const bp_libdw *dw, Elf *elf, struct debug_file *ret_file) {
    const void *bits;
    char path[128] = "/usr/lib/debug/.build-id/";
    ssize_t byte_count = dw->dwelf_elf_gnu_build_id(elf, &bits);
    size_t length = strlen(path);
    if (byte_count < 2 || byte_count > 32) {
        return false;
    }
    for (ssize_t i = 0; i < byte_count; i++) {
        length += (size_t)snprintf(path + length, sizeof path - length, i == 0 ? "%02x/" : "%02x",
                                   ((const unsigned char *)bits)[i]);
    }
    (void)snprintf(path + length, sizeof path - length, ".debug");
    return try_separate(dw, elf, path, ret_file);
}

/* The three places of gdb's manual, "Debugging Information in Separate Files". */
static bool open_by_link(const bp_libdw *dw, Elf *elf, const char *object_path,
                         struct debug_file *ret_file) {
    static const char *const places[][2] = {{"", ""}, {"", ".debug/"}, {"/usr/lib/debug", ""}};
    GElf_Word checksum;
    const char *name = dw->dwelf_elf_gnu_debuglink(elf, &checksum);
    const char *slash = strrchr(object_path, '/');
    if (name == NULL || slash == NULL || strchr(name, '/') != NULL) {
        return false;
    }
    for (size_t i = 0; i < sizeof places / sizeof places[0]; i++) {
        char path[PATH_MAX];
        int length = snprintf(path, sizeof path, "%s%.*s%s%s", places[i][0],
                              (int)(slash - object_path + 1), object_path, places[i][1], name);
        if (length > 0 && (size_t)length < sizeof path && try_separate(dw, elf, path, ret_file)) {
            return true;
        }
    }
    return false;
}

/* Symbol and structure may lie in different files: strip keeps one without the other. */
static bp_dwarf_status search(const bp_libdw *dw, struct debug_file *own, const char *path,
                              bp_jemalloc_layout *layout) {
    struct debug_file separate = {.fd = -1};
    bool has_block = find_block(dw, own->elf, layout);
    bool has_structure = has_block && find_structure(dw, own, layout);
    if (!has_structure && (open_by_build_id(dw, own->elf, &separate) ||
                           open_by_link(dw, own->elf, path, &separate))) {
        has_block = has_block || find_block(dw, separate.elf, layout);
        has_structure = has_block && find_structure(dw, &separate, layout);
        close_file(dw, &separate);
    }
    if (has_structure) {
        return BP_DWARF_FOUND;
    }
    return has_block ? BP_DWARF_NO_LAYOUT : BP_DWARF_NO_JEMALLOC;
}

bp_dwarf_status bp_jemalloc_dwarf_read(int fd, const char *path, bp_jemalloc_layout *ret_layout,
                                       char *reason, size_t reason_bytes) {
    const bp_libdw *dw = bp_libdw_get();
    bp_jemalloc_layout layout = {0};
    struct debug_file file;
    if (dw == NULL) {
        (void)snprintf(reason, reason_bytes,
                       "libdw.so.1 cannot be loaded; Debian has it as libdw1");
        return BP_DWARF_NO_LIBRARY;
    }
    bool is_open = open_file(dw, fcntl(fd, F_DUPFD_CLOEXEC, 3), &file);
    bp_dwarf_status status = is_open ? search(dw, &file, path, &layout) : BP_DWARF_NO_JEMALLOC;
    close_file(dw, &file);
    if (status == BP_DWARF_FOUND) {
        *ret_layout = layout;
    } else {
        (void)snprintf(
            reason, reason_bytes, "%s",
            status == BP_DWARF_NO_LAYOUT
                ? "it has jemalloc's symbol tsd_tls, but neither it nor a separate debug "
                  "file describes struct tsd_s"
                : "it has no symbol called tsd_tls");
    }
    return status;
}
