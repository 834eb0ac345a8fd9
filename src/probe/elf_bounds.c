#include "probe/elf_bounds.h"

#include <elf.h>
#include <stddef.h>
#include <string.h>

#include "platform/linux/files.h"

/* Higher counts need an extension of the file header, and no program has them. */
static const unsigned section_max = SHN_LORESERVE - 1;
static const unsigned segment_max = 64;

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
    return bytes > UINT64_MAX - section->sh_size ? UINT64_MAX : bytes + section->sh_size;
}

/* Takes from what is left. False when it is not enough. */
static bool take(uint64_t *left_bytes, uint64_t bytes) {
    if (bytes > *left_bytes) {
        return false;
    }
    *left_bytes -= bytes;
    return true;
}

static bool are_sections_within(int fd, const Elf64_Ehdr *header, uint64_t *left_bytes) {
    for (unsigned i = 0; i < header->e_shnum; i++) {
        Elf64_Shdr section;
        if (!bp_read_exactly(fd, header->e_shoff + i * sizeof section, &section, sizeof section)) {
            return false;
        }
        if (!take(left_bytes, bytes_in_memory(fd, &section))) {
            return false;
        }
    }
    return true;
}

bool bp_elf_is_within(int fd, uint64_t limit_bytes) {
    Elf64_Ehdr header;
    uint64_t left_bytes = limit_bytes;
    if (!bp_read_exactly(fd, 0, &header, sizeof header) ||
        memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_phnum > segment_max || header.e_shnum > section_max ||
        (header.e_shoff != 0 && header.e_shnum == 0) ||
        (header.e_shnum != 0 && header.e_shentsize != sizeof(Elf64_Shdr)) ||
        header.e_shoff > INT64_MAX / 2) {
        return false;
    }
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        if (header.e_phentsize != sizeof segment ||
            !bp_read_exactly(fd, header.e_phoff + i * sizeof segment, &segment, sizeof segment) ||
            (segment.p_type == PT_NOTE && !take(&left_bytes, segment.p_filesz))) {
            return false;
        }
    }
    return are_sections_within(fd, &header, &left_bytes);
}
