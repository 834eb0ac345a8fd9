/*
 * XXH3 as the compiler can inline it; no library is linked. For what is no secret: redact/tag.h has
 * the hash with a key.
 */
#ifndef BP_BASE_HASH_H
#define BP_BASE_HASH_H

#define XXH_INLINE_ALL
#include <xxhash.h>

#endif
