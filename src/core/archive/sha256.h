/*
 * SHA-256 of an entry, as the manifest says it.
 */
#ifndef BP_ARCHIVE_SHA256_H
#define BP_ARCHIVE_SHA256_H

#include <nettle/sha2.h>

/* 64 lower-case hexadecimal digits and a NUL. */
#define BP_SHA256_TEXT_BYTES (2 * SHA256_DIGEST_SIZE + 1)

/* The digest of all that went through sha256_update; the hash starts again. */
void bp_sha256_print(struct sha256_ctx *hash, char ret_text[BP_SHA256_TEXT_BYTES]);

#endif
