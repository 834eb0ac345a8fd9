#include "process/elf_object.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "platform/linux/files.h"

/* Tables are walked at most so far: the largest libraries have some 100,000 of either. */
static const size_t dynamic_entry_max = 1024;
static const uint64_t relocation_max = (uint64_t)1 << 22;
static const uint32_t chain_max = 1u << 10; /* of symbols in one bucket: a handful */

static bool read_file(bp_elf_object *object, uint64_t offset, void *out, size_t byte_count) {
    bool is_read = bp_read_exactly(object->fd, offset, out, byte_count);
    if (!is_read && errno != 0) {
        object->read_errno = errno;
    }
    return is_read;
}

bool bp_elf_read_at(bp_elf_object *object, uint64_t address, void *out, size_t byte_count) {
    for (size_t i = 0; i < object->segment_count; i++) {
        const Elf64_Phdr *segment = &object->segments[i];
        if (segment->p_type == PT_LOAD && address >= segment->p_vaddr &&
            address - segment->p_vaddr <= segment->p_filesz &&
            byte_count <= segment->p_filesz - (address - segment->p_vaddr) &&
            segment->p_offset <= INT64_MAX - (address - segment->p_vaddr)) {
            return read_file(object, segment->p_offset + (address - segment->p_vaddr), out,
                             byte_count);
        }
    }
    return false;
}

static void read_dynamic(bp_elf_object *object, const Elf64_Phdr *segment) {
    const struct {
        Elf64_Sxword tag;
        uint64_t *value;
    } wanted[] = {{DT_SYMTAB, &object->symbols},      {DT_STRTAB, &object->strings},
                  {DT_STRSZ, &object->strings_bytes}, {DT_GNU_HASH, &object->hash},
                  {DT_RELA, &object->relocations},    {DT_RELASZ, &object->relocations_bytes}};
    Elf64_Dyn entry;
    for (size_t i = 0; i < dynamic_entry_max && (i + 1) * sizeof entry <= segment->p_filesz; i++) {
        if (!bp_elf_read_at(object, segment->p_vaddr + i * sizeof entry, &entry, sizeof entry) ||
            entry.d_tag == DT_NULL) {
            return;
        }
        for (size_t j = 0; j < sizeof wanted / sizeof wanted[0]; j++) {
            if (entry.d_tag == wanted[j].tag) {
                *wanted[j].value = entry.d_un.d_val;
            }
        }
    }
}

bp_elf_status bp_elf_object_read(int fd, bp_elf_object *object) {
    Elf64_Ehdr header;
    *object = (bp_elf_object){.fd = fd};
    if (!read_file(object, 0, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) {
        return BP_ELF_BAD;
    }
    if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
        header.e_machine != BP_ELF_OWN_MACHINE) {
        return BP_ELF_OTHER_MACHINE;
    }
    if (header.e_phentsize != sizeof(Elf64_Phdr) || header.e_phnum > BP_ELF_SEGMENT_MAX ||
        !read_file(object, header.e_phoff, object->segments,
                   header.e_phnum * sizeof object->segments[0])) {
        return BP_ELF_BAD;
    }
    object->segment_count = header.e_phnum;
    for (size_t i = 0; i < object->segment_count; i++) {
        if (object->segments[i].p_type == PT_DYNAMIC) {
            read_dynamic(object, &object->segments[i]);
        }
    }
    return BP_ELF_OK;
}

static uint32_t gnu_hash(const char *name) {
    uint32_t hash = 5381;
    for (; *name != '\0'; name++) {
        hash = hash * 33 + (unsigned char)*name;
    }
    return hash;
}

/* True if the symbol with this number has the name and is defined. */
static bool is_symbol(bp_elf_object *object, uint64_t number, const char *name,
                      Elf64_Sym *ret_symbol) {
    char found[128];
    size_t name_bytes = strlen(name) + 1;
    Elf64_Sym symbol;
    if (name_bytes > sizeof found ||
        !bp_elf_read_at(object, object->symbols + number * sizeof symbol, &symbol, sizeof symbol) ||
        symbol.st_shndx == SHN_UNDEF || symbol.st_name >= object->strings_bytes ||
        !bp_elf_read_at(object, object->strings + symbol.st_name, found, name_bytes) ||
        memcmp(found, name, name_bytes) != 0) {
        return false;
    }
    *ret_symbol = symbol;
    return true;
}

/* The layout is that of binutils' bfd/elflink.c: header, Bloom filter, buckets, chains. */
bool bp_elf_find_symbol(bp_elf_object *object, const char *name, Elf64_Sym *ret_symbol) {
    uint32_t header[4]; /* buckets, first symbol, words of the filter, shift */
    if (object->hash == 0 || object->symbols == 0 || object->strings == 0 ||
        !bp_elf_read_at(object, object->hash, header, sizeof header) || header[0] == 0 ||
        header[2] == 0) {
        return false;
    }
    uint32_t hash = gnu_hash(name);
    uint64_t filter = object->hash + sizeof header;
    uint64_t word;
    if (!bp_elf_read_at(object, filter + (uint64_t)(hash / 64 % header[2]) * sizeof word, &word,
                        sizeof word) ||
        (word >> (hash % 64) & word >> ((hash >> (header[3] & 31)) % 64) & 1) == 0) {
        return false;
    }
    uint64_t buckets = filter + (uint64_t)header[2] * sizeof word;
    uint64_t chains = buckets + (uint64_t)header[0] * sizeof hash;
    uint32_t number;
    if (!bp_elf_read_at(object, buckets + (uint64_t)(hash % header[0]) * sizeof number, &number,
                        sizeof number) ||
        number < header[1]) {
        return false;
    }
    for (uint32_t i = 0; i < chain_max; i++, number++) {
        uint32_t other;
        if (!bp_elf_read_at(object, chains + (uint64_t)(number - header[1]) * sizeof other, &other,
                            sizeof other)) {
            return false;
        }
        if ((other | 1) == (hash | 1) && is_symbol(object, number, name, ret_symbol)) {
            return true;
        }
        if ((other & 1) != 0) {
            return false;
        }
    }
    return false;
}

static bool segment_has_text(bp_elf_object *object, const Elf64_Phdr *segment, const char *text,
                             uint64_t *left_bytes) {
    size_t text_bytes = strlen(text);
    char piece[1 << 16];
    size_t kept_bytes = 0; /* the end of the piece before, which the text may begin in */
    uint64_t at = 0;
    for (uint64_t rest; (rest = segment->p_filesz - at) > 0 && *left_bytes > 0;) {
        size_t room = sizeof piece - kept_bytes;
        size_t wanted = rest < room ? (size_t)rest : room;
        wanted = *left_bytes < wanted ? (size_t)*left_bytes : wanted;
        if (!read_file(object, segment->p_offset + at, piece + kept_bytes, wanted)) {
            return false;
        }
        size_t piece_bytes = kept_bytes + wanted;
        if (memmem(piece, piece_bytes, text, text_bytes) != NULL) {
            return true;
        }
        kept_bytes = piece_bytes < text_bytes ? piece_bytes : text_bytes - 1;
        memmove(piece, piece + piece_bytes - kept_bytes, kept_bytes);
        at += wanted;
        *left_bytes -= wanted;
    }
    return false;
}

bool bp_elf_has_text(bp_elf_object *object, const char *text) {
    uint64_t left_bytes = (uint64_t)256 << 20;
    for (size_t i = 0; i < object->segment_count; i++) {
        const Elf64_Phdr *segment = &object->segments[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_W) == 0 &&
            segment_has_text(object, segment, text, &left_bytes)) {
            return true;
        }
    }
    return false;
}

/* NT_GNU_ABI_TAG names the kernel whose calls the program needs. */
static bool has_abi_tag(bp_elf_object *object, const Elf64_Phdr *segment) {
    static const struct {
        Elf64_Nhdr header;
        char name[4];
        uint32_t system;
    } tag = {{4, 16, NT_GNU_ABI_TAG}, "GNU", ELF_NOTE_OS_LINUX};
    unsigned char notes[1024];
    size_t bytes = segment->p_filesz < sizeof notes ? (size_t)segment->p_filesz : sizeof notes;
    if (segment->p_type != PT_NOTE || !bp_elf_read_at(object, segment->p_vaddr, notes, bytes)) {
        return false;
    }
    for (size_t at = 0; at + sizeof tag <= bytes; at += 4) {
        if (memcmp(notes + at, &tag, sizeof tag) == 0) {
            return true;
        }
    }
    return false;
}

bool bp_elf_is_static_glibc(bp_elf_object *object) {
    bool has_loader = false, has_tag = false;
    for (size_t i = 0; i < object->segment_count; i++) {
        has_loader = has_loader || object->segments[i].p_type == PT_INTERP;
        has_tag = has_tag || has_abi_tag(object, &object->segments[i]);
    }
    return has_tag && !has_loader;
}

const Elf64_Phdr *bp_elf_tls_segment(const bp_elf_object *object) {
    for (size_t i = 0; i < object->segment_count; i++) {
        if (object->segments[i].p_type == PT_TLS) {
            return &object->segments[i];
        }
    }
    return NULL;
}

bool bp_elf_code_address(bp_elf_object *object, uint64_t *ret_address) {
    uint64_t page_bytes = (uint64_t)sysconf(_SC_PAGESIZE);
    for (size_t i = 0; i < object->segment_count; i++) {
        const Elf64_Phdr *segment = &object->segments[i];
        if (segment->p_type == PT_LOAD && (segment->p_flags & PF_X) != 0) {
            *ret_address = segment->p_vaddr & ~(page_bytes - 1);
            return true;
        }
    }
    return false;
}

/* Symbol 0 means the object's own block; a symbol that it defines adds its place in there. */
static bool own_addend(bp_elf_object *object, const Elf64_Rela *relocation, int64_t *ret_addend) {
    Elf64_Sym symbol = {0};
    uint64_t number = ELF64_R_SYM(relocation->r_info);
    if (number != 0 && (!bp_elf_read_at(object, object->symbols + number * sizeof symbol, &symbol,
                                        sizeof symbol) ||
                        symbol.st_shndx == SHN_UNDEF)) {
        return false;
    }
    *ret_addend = (int64_t)((uint64_t)relocation->r_addend + symbol.st_value);
    return true;
}

bool bp_elf_find_tls_slot(bp_elf_object *object, uint64_t *ret_slot, int64_t *ret_addend) {
    const uint64_t wanted =
        BP_ELF_OWN_MACHINE == EM_AARCH64 ? R_AARCH64_TLS_TPREL : R_X86_64_TPOFF64;
    Elf64_Rela block[128];
    uint64_t count = object->relocations_bytes / sizeof block[0];
    for (uint64_t at = 0; at < count && at < relocation_max; at += 128) {
        size_t here = count - at < 128 ? (size_t)(count - at) : 128;
        if (!bp_elf_read_at(object, object->relocations + at * sizeof block[0], block,
                            here * sizeof block[0])) {
            return false;
        }
        for (size_t i = 0; i < here; i++) {
            if (ELF64_R_TYPE(block[i].r_info) == wanted &&
                own_addend(object, &block[i], ret_addend)) {
                *ret_slot = block[i].r_offset;
                return true;
            }
        }
    }
    return false;
}

/* Higher counts need an extension of the file header, and no program has them. */
static const unsigned section_max = SHN_LORESERVE - 1;
static const unsigned segment_max = 64;

/* No more than a number can be: sizes are from outside. */
static uint64_t add(uint64_t bytes, uint64_t more) {
    return more > UINT64_MAX - bytes ? UINT64_MAX : bytes + more;
}

/*
 * The memory that a section takes. Debug data are compressed in two ways: with an ELF header, or
 * after "ZLIB" and the size in big endian (".zdebug_…", binutils' older way).
 */
static uint64_t bytes_in_memory(int fd, const Elf64_Shdr *section) {
    Elf64_Chdr header;
    unsigned char older[12];
    uint64_t bytes = 0;
    if (section->sh_type == SHT_NOBITS ||
        (section->sh_type == SHT_PROGBITS && (section->sh_flags & SHF_ALLOC) != 0)) {
        return 0; /* code and data, which are not read */
    }
    if ((section->sh_flags & SHF_COMPRESSED) != 0) {
        bytes =
            bp_read_exactly(fd, section->sh_offset, &header, sizeof header) ? header.ch_size : 0;
    } else if (section->sh_type == SHT_PROGBITS &&
               bp_read_exactly(fd, section->sh_offset, older, sizeof older) &&
               memcmp(older, "ZLIB", 4) == 0) {
        for (size_t i = 4; i < sizeof older; i++) {
            bytes = bytes << 8 | older[i];
        }
    }
    return add(bytes, section->sh_size);
}

uint64_t bp_elf_memory_bytes(int fd) {
    Elf64_Ehdr header;
    uint64_t bytes = 0;
    if (!bp_read_exactly(fd, 0, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phnum > segment_max || header.e_shnum > section_max ||
        (header.e_shoff != 0 && header.e_shnum == 0) ||
        (header.e_shnum != 0 && header.e_shentsize != sizeof(Elf64_Shdr)) ||
        header.e_shoff > INT64_MAX / 2) {
        return UINT64_MAX;
    }
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        if (header.e_phentsize != sizeof segment ||
            !bp_read_exactly(fd, header.e_phoff + i * sizeof segment, &segment, sizeof segment)) {
            return UINT64_MAX;
        }
        bytes = add(bytes, segment.p_type == PT_NOTE ? segment.p_filesz : 0);
    }
    for (unsigned i = 0; i < header.e_shnum; i++) {
        Elf64_Shdr section;
        if (!bp_read_exactly(fd, header.e_shoff + i * sizeof section, &section, sizeof section)) {
            return UINT64_MAX;
        }
        bytes = add(bytes, bytes_in_memory(fd, &section));
    }
    return bytes;
}
