#include "stacks/place_cache.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/hash.h"

enum { cache_bytes = 8 << 20, host_bytes = 1 << 20, head_count = 4096, unit_bytes = 16 };

/* Compared as bytes. */
typedef struct place_key {
    uint64_t device_major, device_minor, inode, offset, is_call, is_host;
    char build_id[sizeof((bp_stack_module *)0)->build_id];
} place_key;

typedef struct kept_place {
    struct kept_place *next;
    place_key key;
    bp_stack_place place; /* its texts are in the cache */
} kept_place;

typedef struct place_cache {
    atomic_size_t used; /* of the bytes; it may count beyond them */
    size_t most_bytes;  /* that are used */
    kept_place *_Atomic heads[head_count];
    _Alignas(unit_bytes) char bytes[];
} place_cache;

static place_cache *_Atomic cache; /* at one address in all children */

void bp_place_cache_begin(bool is_host) {
    place_cache *none = NULL;
    size_t most_bytes = is_host ? host_bytes : cache_bytes;
    size_t made_bytes = sizeof *none + most_bytes; /* which a host may have locked (mlockall(2)) */
    if (atomic_load(&cache) != NULL) {
        return;
    }
    place_cache *made =
        mmap(NULL, made_bytes, PROT_READ | PROT_WRITE,
             (is_host ? MAP_PRIVATE : MAP_SHARED) | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made != MAP_FAILED) {
        made->most_bytes = most_bytes;
    }
    if (made != MAP_FAILED && !atomic_compare_exchange_strong(&cache, &none, made)) {
        (void)munmap(made, made_bytes); /* another thread was first */
    }
}

static void *allocate(size_t bytes) {
    size_t wanted = (bytes + unit_bytes - 1) / unit_bytes * unit_bytes;
    size_t most_bytes = cache->most_bytes;
    size_t at = bytes < most_bytes ? atomic_fetch_add(&cache->used, wanted) : most_bytes;
    return at <= most_bytes - wanted ? cache->bytes + at : NULL;
}

static bool copy_text(const char *from, void *(*take)(size_t bytes), char **to) {
    size_t bytes = from != NULL ? strlen(from) + 1 : 0;
    *to = bytes > 0 ? take(bytes) : NULL;
    if (*to != NULL) {
        memcpy(*to, from, bytes);
    }
    return bytes == 0 || *to != NULL;
}

/* False without room; the texts that were copied stay. */
static bool copy_names(const bp_stack_place *from, void *(*take)(size_t bytes),
                       bp_stack_place *to) {
    size_t inlined_bytes = from->inlined_count * sizeof *from->inlined;
    bool is_whole = copy_text(from->symbol, take, &to->symbol) &&
                    copy_text(from->demangled, take, &to->demangled) &&
                    copy_text(from->source, take, &to->source);
    to->symbol_offset = from->symbol_offset;
    to->line = from->line;
    if (!is_whole || inlined_bytes == 0 || (to->inlined = take(inlined_bytes)) == NULL) {
        return is_whole && inlined_bytes == 0;
    }
    memset(to->inlined, 0, inlined_bytes);
    to->inlined_count = from->inlined_count;
    for (size_t i = 0; is_whole && i < from->inlined_count; i++) {
        const bp_stack_inlined *inlined = &from->inlined[i];
        is_whole = copy_text(inlined->symbol, take, &to->inlined[i].symbol) &&
                   copy_text(inlined->demangled, take, &to->inlined[i].demangled) &&
                   copy_text(inlined->source, take, &to->inlined[i].source);
        to->inlined[i].line = inlined->line;
    }
    return is_whole;
}

/* False where it cannot be known that a file is the same: the vDSO, and one without a build id. */
static bool make_key(const bp_stack_file *file, const bp_stack_place *place, place_key *ret_key) {
    memset(ret_key, 0, sizeof *ret_key);
    ret_key->device_major = file->mapped.device_major;
    ret_key->device_minor = file->mapped.device_minor;
    ret_key->inode = file->mapped.inode;
    ret_key->offset = place->address - file->facts.start;
    ret_key->is_call = place->is_call;
    ret_key->is_host = file->all->is_host; /* whose places have no lines */
    memcpy(ret_key->build_id, file->facts.build_id, sizeof ret_key->build_id);
    return atomic_load(&cache) != NULL && ret_key->inode != 0 && ret_key->build_id[0] != '\0';
}

static kept_place *_Atomic *head_of(const place_key *key) {
    return &cache->heads[XXH3_64bits(key, sizeof *key) % head_count];
}

bool bp_place_cache_find(const bp_stack_file *file, bp_stack_place *place) {
    place_key key;
    const kept_place *kept = make_key(file, place, &key) ? atomic_load(head_of(&key)) : NULL;
    while (kept != NULL && memcmp(&kept->key, &key, sizeof key) != 0) {
        kept = kept->next;
    }
    if (kept == NULL) {
        return false;
    }
    bp_stack_place found = *place;
    if (!copy_names(&kept->place, malloc, &found)) {
        bp_stack_place_release(&found);
        return false;
    }
    *place = found;
    return true;
}

void bp_place_cache_keep(const bp_stack_file *file, const bp_stack_place *place) {
    place_key key;
    kept_place *kept = make_key(file, place, &key) ? allocate(sizeof *kept) : NULL;
    if (kept == NULL) {
        return;
    }
    *kept = (kept_place){.key = key};
    if (copy_names(place, allocate, &kept->place)) {
        kept->next = atomic_load(head_of(&key));
        while (!atomic_compare_exchange_weak(head_of(&key), &kept->next, kept)) {}
    }
}
