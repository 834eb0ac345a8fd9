#include "archive/sha256.h"

#include "base/utf8.h"

void bp_sha256_print(struct sha256_ctx *hash, char ret_text[BP_SHA256_TEXT_BYTES]) {
    uint8_t digest[SHA256_DIGEST_SIZE];
    sha256_digest(hash, sizeof digest, digest);
    bp_hex_print(digest, sizeof digest, ret_text);
}
