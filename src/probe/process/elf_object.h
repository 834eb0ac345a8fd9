/*
 * The loader's view of a 64-bit ELF file: segments, dynamic symbols, TLS relocations. The file may
 * be malformed or change meanwhile: every access is a bounded pread. Linux only.
 */
#ifndef BP_PROCESS_ELF_OBJECT_H
#define BP_PROCESS_ELF_OBJECT_H

#include <elf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The architecture that this program was built for. */
#if defined(__aarch64__)
#define BP_ELF_OWN_MACHINE EM_AARCH64
#elif defined(__x86_64__)
#define BP_ELF_OWN_MACHINE EM_X86_64
#else /* unsupported: no file is of this machine, and so no arithmetic is done */
#define BP_ELF_OWN_MACHINE EM_NONE
#endif

#define BP_ELF_SEGMENT_MAX 64

typedef struct bp_elf_object {
    int fd;         /* borrowed */
    int read_errno; /* of the last read that failed: then what was not found may be there; or 0 */
    Elf64_Phdr segments[BP_ELF_SEGMENT_MAX];
    size_t segment_count;
    /* From the dynamic section, as addresses of the file; 0 where there is none. */
    uint64_t symbols, strings, strings_bytes, hash, relocations, relocations_bytes;
} bp_elf_object;

typedef enum bp_elf_status {
    BP_ELF_OK,
    BP_ELF_BAD,          /* no ELF file, or a broken one */
    BP_ELF_OTHER_MACHINE /* of another architecture, width or byte order than this program */
} bp_elf_status;

/* Reads the headers. `object` is usable after BP_ELF_OK, while `fd` stays open. */
bp_elf_status bp_elf_object_read(int fd, bp_elf_object *object);

/* Copies bytes from where the loader would place them, before relocation. All or false. */
bool bp_elf_read_at(bp_elf_object *object, uint64_t address, void *out, size_t byte_count);

/* Finds a defined dynamic symbol by its exact name, through the GNU hash table. */
bool bp_elf_find_symbol(bp_elf_object *object, const char *name, Elf64_Sym *ret_symbol);

/* Searches code and constants, which the loader maps read-only, for a text of less than 64 bytes:
 * at most 256 MiB. */
bool bp_elf_has_text(bp_elf_object *object, const char *text);

/* True for an executable without a loader, linked with the startup code of glibc, which alone
 * adds this note (csu/abi-note.c). */
bool bp_elf_is_static_glibc(bp_elf_object *object);

/* NULL: there is none. */
const Elf64_Phdr *bp_elf_tls_segment(const bp_elf_object *object);

/* The address of the first executable segment, rounded down to the page. Its distance from the
 * mapping in maps is the load address. */
bool bp_elf_code_address(bp_elf_object *object, uint64_t *ret_address);

/*
 * The first slot into which the loader writes the offset of this object's own thread-local block
 * from the thread pointer, plus `ret_addend`: R_X86_64_TPOFF64, R_AARCH64_TLS_TPREL.
 */
bool bp_elf_find_tls_slot(bp_elf_object *object, uint64_t *ret_slot, int64_t *ret_addend);

/*
 * The memory that all symbols, notes and debug data of a 64-bit ELF file take, decompressed:
 * UINT64_MAX where its tables make no sense or are of an unusual length. libelf and libdw read
 * whole sections, and a sparse file of a few kilobytes can claim any size. The owner can still
 * change it afterwards.
 */
uint64_t bp_elf_memory_bytes(int fd);

#endif
