#include "archive/sha256.h"

#include <stddef.h>
#include <stdint.h>

void bp_sha256_print(struct sha256_ctx *hash, char ret_text[BP_SHA256_TEXT_BYTES]) {
    static const char digits[] = "0123456789abcdef";
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(hash, sizeof digest, digest);
    for (size_t i = 0; i < sizeof digest; i++) {
        ret_text[2 * i] = digits[digest[i] >> 4];
        ret_text[2 * i + 1] = digits[digest[i] & 15];
    }
    ret_text[2 * sizeof digest] = '\0';
}
