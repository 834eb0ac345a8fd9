#include "platform/crash_page.h"

#include <string.h>

#include "base/hash.h"

static const char page_magic[8] = "bpcrash";
static const uint32_t page_version = 4;

void bp_crash_page_init(bp_crash_page *page, const char *session_id) {
    memcpy(page->magic, page_magic, sizeof page->magic);
    page->version = page_version;
    page->size = sizeof *page;
    memcpy(page->session_id, session_id, sizeof page->session_id);
}

uint64_t bp_crash_page_check(const bp_crash_page *page) {
    XXH64_hash_t hash = XXH3_64bits(page, offsetof(bp_crash_page, threads));
    hash = XXH3_64bits_withSeed(page->threads, page->thread_count * sizeof page->threads[0], hash);
    hash = XXH3_64bits_withSeed(page->modules, page->module_count * sizeof page->modules[0], hash);
    hash = XXH3_64bits_withSeed(page->stack, (size_t)page->stack_bytes, hash);
    hash = XXH3_64bits_withSeed(page->stacks, (size_t)page->stacks_bytes, hash);
    hash = XXH3_64bits_withSeed(page->maps, (size_t)page->maps_bytes, hash);
    return hash != 0 ? hash : 1;
}

static bool is_within_bounds(const bp_crash_page *page) {
    if (page->register_count > BP_CRASH_REGISTER_MAX || page->thread_count > BP_CRASH_THREAD_MAX ||
        page->module_count > BP_CRASH_MODULE_MAX || page->stack_bytes > BP_CRASH_STACK_BYTES ||
        page->maps_bytes > BP_CRASH_MAPS_BYTES || page->stacks_bytes > BP_CRASH_STACKS_BYTES ||
        page->stack_start > UINT64_MAX - BP_CRASH_STACK_BYTES ||
        memchr(page->abort_message, '\0', sizeof page->abort_message) == NULL ||
        memchr(page->exception_type, '\0', sizeof page->exception_type) == NULL ||
        memchr(page->exception_message, '\0', sizeof page->exception_message) == NULL) {
        return false;
    }
    for (uint32_t i = 0; i < page->thread_count; i++) {
        const bp_crash_thread *thread = &page->threads[i];
        if (thread->tid <= 0 || thread->register_count > BP_CRASH_REGISTER_MAX ||
            thread->register_count * sizeof(uint64_t) > thread->stack_at ||
            thread->stack_at > page->stacks_bytes ||
            thread->stack_bytes > page->stacks_bytes - thread->stack_at ||
            thread->stack_pointer > UINT64_MAX - thread->stack_bytes) {
            return false;
        }
    }
    for (uint32_t i = 0; i < page->module_count; i++) {
        if (memchr(page->modules[i].build_id, '\0', sizeof page->modules[i].build_id) == NULL) {
            return false;
        }
    }
    return page->maps_bytes == 0 || page->maps[page->maps_bytes - 1] == '\n';
}

bp_crash_page_state bp_crash_page_validate(const void *bytes, size_t byte_count,
                                           const char *session_id) {
    const bp_crash_page *page = bytes;
    if (byte_count != sizeof *page || memcmp(page->magic, page_magic, sizeof page->magic) != 0 ||
        page->version != page_version || page->size != sizeof *page ||
        memcmp(page->session_id, session_id, sizeof page->session_id) != 0) {
        return BP_CRASH_PAGE_DAMAGED;
    }
    if (page->check == 0) {
        return page->is_begun == 0 ? BP_CRASH_PAGE_UNUSED : BP_CRASH_PAGE_TORN;
    }
    return is_within_bounds(page) && page->check == bp_crash_page_check(page)
               ? BP_CRASH_PAGE_WHOLE
               : BP_CRASH_PAGE_DAMAGED;
}
