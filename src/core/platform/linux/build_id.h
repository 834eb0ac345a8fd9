/* The GNU build id of an ELF file, which may be malformed. Pure: a function reads the bytes. */
#ifndef BP_PLATFORM_LINUX_BUILD_ID_H
#define BP_PLATFORM_LINUX_BUILD_ID_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads `byte_count` bytes at `offset` into `out`, all of them or it returns false. */
typedef bool bp_build_id_reader(void *context, uint64_t offset, void *out, size_t byte_count);

/* Room for 32 bytes in hexadecimal and a NUL; the usual id has 20 bytes. */
#define BP_BUILD_ID_TEXT_BYTES 65

/*
 * Finds the build id in the note segments, of 32-bit and 64-bit files of both byte orders. Reads
 * at most 64 KiB of program headers and notes together. Returns false, with `out` untouched, when
 * there is none, when it is longer than 32 bytes, or when the file is no ELF file.
 */
bool bp_build_id_read(bp_build_id_reader *reader, void *context, char out[BP_BUILD_ID_TEXT_BYTES]);

#endif
